import numpy as np
import pytest
from onnx import parser

from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant
from compiler.graph.read_onnx import read_onnx

TEXT = """
<ir_version: 9, opset_import: ["" : 17]>
main (float[2, 3] x) => (int64[2, N] y) { y = NonZero(x) }
"""


def test_a_shape_that_depends_on_values_is_refused_with_advice() -> None:
    with pytest.raises(ModelError, match=r"NonZero 'y': .* run time; .*fixed_inputs=\{'x': array"):
        read_onnx(parser.parse_model(TEXT))


def test_it_is_computed_of_constants() -> None:
    x = np.array([[0, 2, 0], [3, 0, 4]], np.float32)
    [result] = read_onnx(parser.parse_model(TEXT), fixed_inputs={"x": x}).outputs
    assert isinstance(result, Constant)
    assert result.elements.tolist() == [[0, 1, 1], [1, 0, 2]]


def test_boxes_that_overlap_better_ones_are_left_out() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[1, 4, 4] boxes, float[1, 1, 4] scores) => (int64[N, 3] y)
    <int64 most = {3}, float overlap = {0.5}, float least = {0.1}>
    { y = NonMaxSuppression(boxes, scores, most, overlap, least) }
    """
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 0.9], [1, 1, 0, 0.4], [5, 5, 6, 6]]], np.float32)
    scores = np.array([[[0.8, 0.9, 0.7, 0.05]]], np.float32)
    graph = read_onnx(parser.parse_model(text), fixed_inputs={"boxes": boxes, "scores": scores})
    [result] = graph.outputs
    assert isinstance(result, Constant)
    assert result.elements.tolist() == [[0, 0, 1], [0, 0, 2]]
