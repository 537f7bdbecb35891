import random
import re

import numpy as np
import pytest

from compiler import te
from compiler.driver import build
from compiler.graph.error import ModelError
from compiler.graph.extents import Shape, multiply, symbol
from compiler.graph.nodes import Attr, Attrs, TensorType
from compiler.graph.operator import GRAPH_OPERATORS, GraphOperator, find_operator
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import static_shape
from tests.targets import here


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("add", [(2, 3), (3,)]),
        ("multiply", [(2, 1), (1, 4)]),
        ("matmul", [(2, 1, 3, 4), (5, 4, 2)]),
    ],
)
def test_operators_build_what_their_references_compute(
    op: str, shapes: list[tuple[int, ...]]
) -> None:
    operator = find_operator(op)
    rng = np.random.default_rng(2)
    arrays = [rng.random(shape, np.float32) for shape in shapes]
    inputs = [te.placeholder(a.shape, "float32", name=f"x{k}") for k, a in enumerate(arrays)]
    [result] = operator.apply_tensors(inputs, {})
    kernel = build(te.create_prim_func([*inputs, result]), here())
    output = np.empty(static_shape(result.buffer), np.float32)
    kernel(*arrays, output)
    [expected] = operator.apply_reference(arrays, {})
    np.testing.assert_allclose(output, expected, rtol=1e-5)


# Values of each type that an attribute may have, and of none.
VALUES: list[Attr] = [
    0,
    -1,
    True,
    1.5,
    "x",
    None,
    (),
    (0, 1),
    (1, "a"),
    (0, 0, 0, 0),
    ((0, 1), (1, 1)),
]
N = symbol("n")
SHAPES: list[Shape] = [(), (3,), (N,), (2, 8), (N, multiply(N, 2)), (1, 4, 8, 8), (N, 4, 8, 8)]


@pytest.mark.parametrize("name", sorted(GRAPH_OPERATORS))
def test_operands_and_attributes_of_any_type_fit_or_are_refused_readably(name: str) -> None:
    operator, rng = GRAPH_OPERATORS[name], random.Random(name)
    for _ in range(60):
        dtype: DType = rng.choice(["float32", "int64", "int8", "bool"])
        count = 2 if operator.is_variadic else operator.num_operands
        inputs = [TensorType(rng.choice(SHAPES), dtype) for _ in range(count)]
        required = [each for each in operator.attributes if each not in operator.defaults]
        optional = [each for each in operator.defaults if rng.random() < 0.3]
        attrs = {each: rng.choice(VALUES) for each in (*required, *optional)}
        assert not re.search(r"Var\(|IntImm|T\.int64", _answer(operator, inputs, attrs))


def _answer(operator: GraphOperator, inputs: list[TensorType], attrs: Attrs) -> str:
    try:
        return ", ".join(map(str, operator.infer_types(inputs, attrs)))
    except ModelError as error:
        return str(error)
