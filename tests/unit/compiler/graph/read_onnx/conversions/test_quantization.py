import numpy as np
from onnx import parser

from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference


def test_integers_are_quantized_as_the_floats_that_they_are() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 13]>
    main (int32[4] x) => (int8[4] y)
    <float s = {4}, int8 z = {1}>
    { y = QuantizeLinear(x, s, z) }
    """
    x = np.array([2, 6, -1000, 20], np.int32)
    result = run_reference(read_onnx(parser.parse_model(text)), {"x": x})["y"]
    assert result.tolist() == [1, 3, -128, 6]
