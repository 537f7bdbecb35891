import numpy as np
import pytest

from compiler import te
from compiler.driver import build
from compiler.graph.operator import find_operator
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
