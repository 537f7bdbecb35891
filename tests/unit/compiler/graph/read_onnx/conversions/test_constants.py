import numpy as np
from onnx import parser

from compiler.graph.nodes import Constant
from compiler.graph.read_onnx import read_onnx


def test_the_shape_of_a_tensor_is_a_constant() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    shapes (float[2, 3, 5] x) => (int64[2] y, int64 n) { y = Shape<start=1>(x) n = Size(x) }
    """
    shape, size = read_onnx(parser.parse_model(text)).outputs
    assert isinstance(shape, Constant)
    assert isinstance(size, Constant)
    np.testing.assert_array_equal(shape.elements, [3, 5])
    assert size.elements == 30
