from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant
from compiler.graph.read_onnx import read_onnx
from compiler.graph.reference import run_reference

BRANCHES = """
<ir_version: 9, opset_import: ["" : 17]>
main (float[3] x, bool c) => (float[3] y)
{
    y = If (c) <
        then_branch = plus () => (float[3] a) { a = Add(x, x) },
        else_branch = times () => (float[3] b) { b = Mul(x, x) }
    >
}
"""
LOOP = """
<ir_version: 9, opset_import: ["" : 17]>
main (float[3] x) => (float[3] y, float[N, 3] steps)
<int64 trips = {4}, bool go = {1}>
{
    y, steps = Loop (trips, go, x) <
        body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t, float[3] u) {
            d = Identity(c)
            t = Add(s, x)
            u = Mul(t, x)
        }
    >
}
"""
X = np.array([1, 2, 3], np.float32)


def test_a_branch_is_chosen_by_a_constant_condition() -> None:
    for chosen, expected in ((True, X + X), (False, X * X)):
        graph = read_onnx(parser.parse_model(BRANCHES), fixed_inputs={"c": np.array(chosen)})
        assert len(graph.nodes) == 1
        np.testing.assert_array_equal(run_reference(graph, {"x": X})["y"], expected)


def test_both_branches_are_computed_if_the_condition_is_not_known() -> None:
    graph = read_onnx(parser.parse_model(BRANCHES))
    for chosen, expected in ((True, X + X), (False, X * X)):
        result = run_reference(graph, {"x": X, "c": np.array(chosen)})["y"]
        np.testing.assert_array_equal(result, expected)


def test_branches_of_different_shapes_need_a_constant_condition() -> None:
    text = BRANCHES.replace("b = Mul(x, x)", "b = Shape(x)")
    with pytest.raises(ModelError, match=r"If 'y': .*int64.*fixed_inputs=\{'c': array\}"):
        read_onnx(parser.parse_model(text))


def test_a_loop_with_a_known_trip_count_is_unrolled() -> None:
    graph = read_onnx(parser.parse_model(LOOP))
    results = run_reference(graph, {"x": X})
    np.testing.assert_array_equal(results["y"], 5 * X)
    np.testing.assert_array_equal(results["steps"], [k * X * X for k in (2, 3, 4, 5)])


def test_a_loop_that_does_not_end_is_refused() -> None:
    with pytest.raises(ModelError, match="more than 1024 iterations"):
        read_onnx(parser.parse_model(LOOP.replace("{4}", "{9000000000000000000}")))


def test_a_condition_that_follows_from_inputs_is_refused() -> None:
    text = LOOP.replace("(float[3] x)", "(float[3] x, bool go)").replace(", bool go = {1}", "")
    with pytest.raises(ModelError, match=r"condition .* run time; .*fixed_inputs=\{'go': array\}"):
        read_onnx(parser.parse_model(text))


def test_a_scan_is_unrolled_along_its_axes() -> None:
    graph = read_onnx(_scan(scan_input_axes=[1], scan_output_directions=[1]))
    data = np.arange(6, dtype=np.float32).reshape(3, 2)
    results = run_reference(graph, {"start": X, "data": data})
    np.testing.assert_array_equal(results["total"], X + data[:, 0] + data[:, 1])
    np.testing.assert_array_equal(results["steps"], [X + data.sum(1), X + data[:, 0]])


def _scan(**attributes: Any) -> ModelProto:
    def value(name: str, *shape: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    nodes = [
        helper.make_node("Add", ["s", "part"], ["t"]),
        helper.make_node("Identity", ["t"], ["u"]),
    ]
    body = helper.make_graph(
        nodes, "body", [value("s", 3), value("part", 3)], [value("t", 3), value("u", 3)]
    )
    names = ["start", "data"], ["total", "steps"]
    node = helper.make_node("Scan", *names, body=body, num_scan_inputs=1, **attributes)
    graph = helper.make_graph(
        [node],
        "scan",
        [value("start", 3), value("data", 3, 2)],
        [value("total", 3), value("steps", 2, 3)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_values_of_enclosing_graphs_are_seen_and_folded() -> None:
    text = """
    <ir_version: 9, opset_import: ["" : 17]>
    main (float[3] x) => (int64[1] y) <bool c = {1}>
    {
        n = Shape(x)
        y = If (c) <
            then_branch = a () => (int64[1] p) { p = Add(n, n) },
            else_branch = b () => (int64[1] q) { q = Identity(n) }
        >
    }
    """
    [result] = read_onnx(parser.parse_model(text)).outputs
    assert isinstance(result, Constant)
    assert result.elements.tolist() == [6]
