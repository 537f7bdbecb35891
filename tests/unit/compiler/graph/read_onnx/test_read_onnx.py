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
