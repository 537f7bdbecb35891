import numpy as np
import pytest
from onnx import parser

from compiler.graph.error import ModelError
from compiler.graph.nodes import Graph
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference
from compiler.graph.verify import verify_graph

LINEAR = """
<ir_version: 8, opset_import: ["" : 17]>
linear (float[4, 2] x) => (float[4, 3] y)
<float[2, 3] w = {1, 2, 3, 4, 5, 6}>
{
    product = MatMul(x, w)
    two = Constant<value_float = 2.0>()
    four = Add(two, two)
    y = Mul(product, four)
}
"""


def _read(text: str) -> Graph:
    graph = read_onnx(parser.parse_model(text).SerializeToString())
    verify_graph(graph)
    return graph


def test_a_model_computes_what_numpy_computes() -> None:
    x = np.random.default_rng(0).random((4, 2), np.float32)
    weights = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    result = run_reference(_read(LINEAR), {"x": x})["y"]
    np.testing.assert_allclose(result, x @ weights * 4, rtol=1e-6)


def test_nodes_of_constants_are_folded() -> None:
    assert [node.op for node in _read(LINEAR).nodes] == ["matmul", "multiply"]


def test_a_refusal_names_the_node() -> None:
    with pytest.raises(ModelError, match=r"MatMul 'product': .*\(4, 2\).*\(3, 2\)"):
        _read(LINEAR.replace("float[2, 3] w", "float[3, 2] w"))


@pytest.mark.parametrize(
    "node",
    [
        "y = Trilu(x, pair)",
        "v, i = TopK(x, pair) y = Neg(v)",
        "y = Pad(x, pads, wide)",
        "y = ConstantOfShape<value = float[2] {1.0, 2.0}>(pair)",
    ],
)
def test_several_numbers_instead_of_one_are_refused(node: str) -> None:
    text = f"""
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[2, 2] x) => (float[n, m] y)
    <int64[2] pair = {{1, 1}}, int64[4] pads = {{1, 1, 1, 1}}, float[2] wide = {{1.0, 2.0}}>
    {{ {node} }}
    """
    with pytest.raises(ModelError, match="has 2 elements: expected one"):
        read_onnx(parser.parse_model(text))
