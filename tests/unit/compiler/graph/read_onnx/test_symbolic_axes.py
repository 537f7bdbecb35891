from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from compiler.graph.error import ModelError
from compiler.graph.extents import multiply
from compiler.graph.nodes import Constant
from compiler.graph.read_onnx import read_onnx
from compiler.graph.verify import verify_graph

FLATTENED = """
<ir_version: 9, opset_import: ["" : 17]>
main (float[batch, 4, 6] x, float[batch, 24] z) => (float[batch, 24] y)
<int64[1] zero = {0}, int64[1] one = {1}, int64[1] rest = {-1}>
{
    shape = Shape(x)
    rows = Slice(shape, zero, one)
    new_shape = Concat<axis = 0>(rows, rest)
    flat = Reshape(x, new_shape)
    y = Add(flat, z)
}
"""


def test_axes_of_one_name_are_one_symbol() -> None:
    graph = read_onnx(parser.parse_model(FLATTENED))
    verify_graph(graph)
    x, z = graph.inputs
    assert x.type.shape[0] is z.type.shape[0]
    assert graph.outputs[0].type.shape == (x.type.shape[0], 24)


def test_a_shape_of_one_input_fixes_the_axes_of_that_name() -> None:
    graph = read_onnx(parser.parse_model(FLATTENED), shapes={"x": (3, 4, 6)})
    assert [value.type.shape for value in graph.inputs] == [(3, 4, 6), (3, 24)]
    assert graph.outputs[0].type.shape == (3, 24)


def test_shapes_are_computed_on_symbolic_extents() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[n, 4, 6] x) => (float[m, 2] y)
    <int64[1] one = {1}, int64[1] far = {9223372036854775807}, int64[2] two = {12, 2}>
    {
        shape = Shape(x)
        last = Slice(shape, one, far)
        elements = ReduceProd<keepdims = 0>(shape)
        half = Constant<value_int = 2>()
        rows = Div(elements, half)
        rows_1d = Reshape(rows, one)
        new_shape = Concat<axis = 0>(rows_1d, half_1d)
        y = Reshape(x, new_shape)
    }
    """.replace("half_1d", "last_of_two").replace(
        "new_shape =", "last_of_two = Slice(two, one, far)\n        new_shape ="
    )
    graph = read_onnx(parser.parse_model(text))
    [x] = graph.inputs
    rows, columns = graph.outputs[0].type.shape
    assert columns == 2
    assert rows == multiply(x.type.shape[0], 12)


def test_numbers_that_depend_on_symbolic_axes_are_refused_with_advice() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[n] x) => (int64[1] y) { y = Shape(x) }
    """
    with pytest.raises(ModelError, match=r"symbolic axes: it is \(n,\); .*shapes="):
        read_onnx(parser.parse_model(text))
    [result] = read_onnx(parser.parse_model(text), shapes={"x": (7,)}).outputs
    assert isinstance(result, Constant)
    assert result.elements.tolist() == [7]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"w": (3,)}, r"no input 'w'; its inputs: 'x', 'z'"),
        ({"x": (3, 5, 6)}, r"input 'x' is \(3, 4, 6\), not \(3, 5, 6\)"),
        ({"x": (3, 4)}, r"not \(3, 4\)"),
        ({"x": (3, 4, 6), "z": (4, 24)}, r"the axis batch is 4, and 3 in another input"),
        ({"x": (-3, 4, 6)}, r"extents of 0 or more"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        read_onnx(parser.parse_model(FLATTENED), shapes=shapes)


def test_a_fixed_input_of_another_type_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'z' is float32 .* not float64 \(3, 24\)"):
        read_onnx(parser.parse_model(FLATTENED), fixed_inputs={"z": np.zeros((3, 24))})


def test_extents_that_are_converted_to_int32_join_others_of_int32() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[n, 6] x) => (float[m, k, 3] y) <int32[2] rest = {2, 3}> {
        s = Shape(x)
        i = Cast <to = 6> (s)
        axis = Constant <value_ints = [0]> ()
        end = Constant <value_ints = [1]> ()
        n = Slice(i, axis, end)
        joined = Concat <axis = 0> (n, rest)
        shape = Cast <to = 7> (joined)
        y = Reshape(x, shape)
    }
    """
    [result] = read_onnx(parser.parse_model(text)).outputs
    assert result.type.shape[1:] == (2, 3)


def test_axes_whose_name_is_a_question_mark_are_not_equal() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["?", "?"])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [x])
    graph.output[0].name = "y"
    model = helper.make_model(graph)
    rows, columns = read_onnx(model).inputs[0].type.shape
    assert rows != columns
    [result] = read_onnx(model, shapes={"x": (2, 3)}).outputs
    assert result.type.shape == (2, 3)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((3,), r"shapes: input 'x' is \(batch, 4, 6\), not \(3,\)"),
        ((3, 5, 6), r"shapes: input 'x' is \(3, 4, 6\), not \(3, 5, 6\)"),
        ("346", "shapes: the shape of input 'x' is '346': expected integers"),
        ((3.5, 4, 6), "expected integers"),
        ((None, 4, 6), "expected integers"),
        (3, "expected integers"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(shape: Any, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        read_onnx(parser.parse_model(FLATTENED), shapes={"x": shape})


def test_a_value_that_is_no_array_is_refused() -> None:
    values: Any = {"x": [[1.0]]}
    with pytest.raises(ModelError, match=r"input 'x' is float32 \(batch, 4, 6\), not"):
        read_onnx(parser.parse_model(FLATTENED), fixed_inputs=values)
