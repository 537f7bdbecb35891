from collections.abc import Callable

import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import TensorValue
from compiler.graph.rewrite.match_norms import match_norms
from tests.graph_rewrites import image, number, operators_after, weights

Spelling = Callable[[GraphBuilder, TensorValue], TensorValue]


def _root(b: GraphBuilder, x: TensorValue, axes: tuple[int, ...] = (-1,)) -> TensorValue:
    square = b.add("power", x, number(2))
    variance = b.add("mean", square, axis=axes, keepdims=True)
    return b.add("sqrt", b.add("add", variance, number(1e-5)))


def _centred(b: GraphBuilder, x: TensorValue, axes: tuple[int, ...] = (-1,)) -> TensorValue:
    return b.add("subtract", x, b.add("mean", x, axis=axes, keepdims=True))


def _layer_norm(b: GraphBuilder, x: TensorValue) -> TensorValue:
    centred = _centred(b, x)
    normal = b.add("divide", centred, _root(b, centred))
    return b.add("add", b.add("multiply", normal, weights(6)), weights(6))


def _layer_norm_of_two_axes(b: GraphBuilder, x: TensorValue) -> TensorValue:
    centred = _centred(b, x, (2, 1))
    normal = b.add("divide", centred, _root(b, centred, (1, 2)))
    return b.add("add", weights(1, 4, 6), b.add("multiply", weights(4, 6), normal))


def _rms_norm(b: GraphBuilder, x: TensorValue) -> TensorValue:
    inverse = b.add("divide", number(1), _root(b, x))
    return b.add("multiply", weights(6), b.add("multiply", x, inverse))


def _rms_norm_by_products(b: GraphBuilder, x: TensorValue) -> TensorValue:
    mean = b.add("mean", b.add("multiply", x, x), axis=(-1,), keepdims=True)
    inverse = b.add("power", b.add("add", number(1e-6), mean), number(-0.5))
    return b.add("multiply", inverse, x)


def _after(spelling: Spelling) -> list[str]:
    builder = GraphBuilder()
    x = builder.input("x", image(3, 4, 6))
    return operators_after(builder.finish([spelling(builder, x)], ["y"]), match_norms)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        (_layer_norm, "nn.layer_norm"),
        (_layer_norm_of_two_axes, "nn.layer_norm"),
        (_rms_norm, "nn.rms_norm"),
        (_rms_norm_by_products, "nn.rms_norm"),
    ],
)
def test_a_norm_that_is_spelled_out_becomes_one_node(spelling: Spelling, expected: str) -> None:
    assert _after(spelling) == [expected]


def _norm_of_the_first_axis(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("divide", x, _root(b, x, (0,)))


def _norm_by_another_value(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("divide", x, _root(b, b.add("exp", x)))


def _factors_of_rows(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("multiply", b.add("nn.rms_norm", x, weights(6)), weights(4, 1))


def _shift_of_an_rms_norm(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("add", b.add("nn.rms_norm", x, weights(6)), weights(6))


@pytest.mark.parametrize(
    "spelling",
    [_norm_of_the_first_axis, _norm_by_another_value, _factors_of_rows, _shift_of_an_rms_norm],
)
def test_what_resembles_a_norm_stays(spelling: Spelling) -> None:
    assert _after(spelling)[-1] in ("divide", "multiply", "add")


def test_a_norm_that_others_read_keeps_its_factors() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(3, 6))
    normal = builder.add("nn.rms_norm", x, weights(6))
    outputs = [normal, builder.add("multiply", normal, weights(6))]
    graph = builder.finish(outputs, ["normal", "scaled"])
    assert operators_after(graph, match_norms) == ["nn.rms_norm", "multiply"]
