from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import TensorValue, constant
from compiler.graph.rewrite.drop_empty import drop_empty
from compiler.graph.rewrite.simplify import simplify
from tests.graph_rewrites import image, operators_after


def _nothing(builder: GraphBuilder, x: TensorValue) -> TensorValue:
    """Return a slice without elements."""
    return builder.add("strided_slice", x, axes=(0,), begin=(1,), end=(1,), strides=(1,))


def test_parts_without_elements_are_left_out_of_a_join() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(2, 3))
    graph = builder.finish([builder.add("concat", _nothing(builder, x), x)], ["y"])
    assert operators_after(graph, drop_empty) == ["concat"]
    assert operators_after(graph, simplify) == []


def test_results_without_elements_are_constants() -> None:
    builder = GraphBuilder()
    x, empty = builder.input("x", image(2, 3)), builder.input("empty", image(0, 3))
    outputs = [builder.add("exp", _nothing(builder, x)), empty]
    assert operators_after(builder.finish(outputs, ["y", "z"]), drop_empty) == []


def test_sums_of_nothing_become_constants() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(2, 3))
    total = builder.add("sum", _nothing(builder, x), axis=(0,))
    graph = builder.finish([builder.add("add", x, total)], ["y"])
    assert operators_after(graph, simplify) == ["add"]


def test_a_graph_without_empty_tensors_is_unchanged() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(2, 3))
    graph = builder.finish([builder.add("exp", x), constant([1.0])], ["y", "z"])
    assert drop_empty(graph).nodes == graph.nodes
