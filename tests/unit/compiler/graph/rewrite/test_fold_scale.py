from collections.abc import Callable

import numpy as np
import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Graph, TensorType, TensorValue, constant
from compiler.graph.rewrite.fold_scale import fold_scale
from compiler.graph.rewrite.simplify import simplify
from compiler.graph.rewrite.split_batch_norm import split_batch_norm
from tests.graph_rewrites import image, number, operators_after, weights

Layer = Callable[[GraphBuilder, TensorValue], TensorValue]


def _convolution(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("nn.conv2d", x, weights(6, 4, 3, 3))


def _in_groups(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("nn.conv2d", x, weights(6, 2, 3, 3), groups=2)


def _transposed(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("nn.conv2d_transpose", x, weights(4, 6, 3, 3))


def _with_bias(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("add", weights(6, 1, 1), _convolution(b, x))


def _graph(layer: Layer, after: Layer) -> Graph:
    builder = GraphBuilder()
    x = builder.input("x", image(2, 4, 5, 5))
    return builder.finish([after(builder, layer(builder, x))], ["y"])


def _batch_norm(b: GraphBuilder, x: TensorValue) -> TensorValue:
    channels = x.type.static_shape[1]
    return b.add("nn.batch_norm", x, *(weights(channels) for _ in range(4)), epsilon=1e-3)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (_convolution, ["nn.conv2d", "add"]),
        (_in_groups, ["nn.conv2d", "add"]),
        (_transposed, ["nn.conv2d_transpose", "add"]),
        (_with_bias, ["nn.conv2d", "add"]),
    ],
)
def test_a_batch_norm_becomes_a_part_of_the_convolution(layer: Layer, expected: list[str]) -> None:
    graph = _graph(layer, _batch_norm)
    assert operators_after(graph, split_batch_norm)[-2:] == ["multiply", "add"]
    assert operators_after(graph, simplify) == expected


def test_a_convolution_with_other_weights_keeps_its_name() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(1, 4, 5, 5))
    y = builder.add("nn.conv2d", x, weights(6, 4, 3, 3), name="conv_1")
    parameters = (weights(6) for _ in range(4))
    graph = builder.finish([builder.add("nn.batch_norm", y, *parameters, name="bn_1")], ["y"])
    assert [node.name for node in simplify(graph).nodes] == ["conv_1", "bn_1"]


def test_a_batch_norm_of_unknown_statistics_stays() -> None:
    builder = GraphBuilder()
    x, mean = builder.input("x", image(2, 4, 5)), builder.input("mean", image(4))
    parameters = (weights(4), weights(4), mean, weights(4))
    graph = builder.finish([builder.add("nn.batch_norm", x, *parameters)], ["y"])
    assert operators_after(graph, simplify) == ["nn.batch_norm"]


def test_factors_of_columns_become_a_part_of_a_matrix() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(3, 4))
    product = builder.add("add", builder.add("matmul", x, weights(4, 6)), weights(6))
    scaled = builder.add("multiply", weights(6), builder.add("divide", product, number(3)))
    graph = builder.finish([builder.add("subtract", scaled, weights(6))], ["y"])
    assert operators_after(graph, simplify) == ["matmul", "add"]


def _by_rows(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("multiply", x, weights(x.type.static_shape[-1]))


def _in_transposed_groups(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("nn.conv2d_transpose", x, weights(4, 3, 3, 3), groups=2)


@pytest.mark.parametrize(
    ("layer", "after"),
    [
        (_convolution, _by_rows),
        (_in_transposed_groups, lambda b, x: b.add("multiply", x, weights(6, 1, 1))),
        (lambda b, x: b.add("exp", x), lambda b, x: b.add("multiply", x, number(3))),
    ],
)
def test_factors_that_weights_cannot_absorb_stay(layer: Layer, after: Layer) -> None:
    assert operators_after(_graph(layer, after), fold_scale)[-1] == "multiply"


def test_a_product_that_others_read_keeps_its_weights() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(3, 4))
    product = builder.add("matmul", x, weights(4, 6))
    graph = builder.finish([product, builder.add("multiply", product, number(3))], ["y", "z"])
    assert operators_after(graph, fold_scale) == ["matmul", "multiply"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("add", "add"), ("subtract", "add"), ("divide", "round")],
)
def test_sums_and_quotients_of_other_values_are_not_rounded_otherwise(
    first: str, second: str
) -> None:
    """49 times the nearest float to 1/49 is less than 1: positions must not be computed so."""
    builder = GraphBuilder()
    x = builder.input("x", image(3, 4))
    y = builder.add(first, x, number(49))
    y = builder.add(second, y) if second == "round" else builder.add(second, y, number(0.3))
    after = operators_after(builder.finish([y], ["y"]), fold_scale)
    assert after in ([first, second], ["add", second])


def test_weights_never_overflow() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((3, 4), "float16"))
    large = constant(np.full((4, 6), 6e4, np.float16))
    product = builder.add("matmul", builder.add("multiply", x, constant(np.float16(1e-3))), large)
    graph = builder.finish([builder.add("multiply", product, constant(np.float16(2)))], ["y"])
    assert operators_after(graph, fold_scale) == ["multiply", "matmul", "multiply"]
