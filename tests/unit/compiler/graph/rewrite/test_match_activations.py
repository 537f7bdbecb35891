import math
from collections.abc import Callable

import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import TensorValue
from compiler.graph.rewrite.match_activations import match_activations
from tests.graph_rewrites import image, number, operators_after

Spelling = Callable[[GraphBuilder, TensorValue], TensorValue]


def _gelu(b: GraphBuilder, x: TensorValue) -> TensorValue:
    erf = b.add("erf", b.add("divide", x, number(math.sqrt(2))))
    return b.add("multiply", b.add("multiply", x, b.add("add", erf, number(1))), number(0.5))


def _gelu_of_a_half(b: GraphBuilder, x: TensorValue) -> TensorValue:
    erf = b.add("erf", b.add("multiply", number(math.sqrt(0.5)), x))
    half = b.add("multiply", number(0.5), x)
    return b.add("multiply", b.add("add", number(1), erf), half)


def _silu(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("multiply", b.add("sigmoid", x), x)


def _hard_swish(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("multiply", x, b.add("nn.hard_sigmoid", x, alpha=1 / 6, beta=0.5))


def _after(spelling: Spelling) -> list[str]:
    builder = GraphBuilder()
    x = builder.input("x", image(3, 5))
    graph = builder.finish([spelling(builder, x)], ["y"])
    return operators_after(graph, match_activations, tolerance=1e-9)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        (_gelu, "nn.gelu"),
        (_gelu_of_a_half, "nn.gelu"),
        (_silu, "nn.silu"),
        (_hard_swish, "nn.hard_swish"),
    ],
)
def test_an_activation_that_is_spelled_out_becomes_one_node(
    spelling: Spelling, expected: str
) -> None:
    assert _after(spelling) == [expected]


def _gelu_of_another_factor(b: GraphBuilder, x: TensorValue) -> TensorValue:
    erf = b.add("erf", b.add("divide", x, number(1.5)))
    return b.add("multiply", b.add("multiply", x, b.add("add", erf, number(1))), number(0.5))


def _gate_of_another_value(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("multiply", b.add("sigmoid", b.add("negative", x)), x)


def _other_hard_sigmoid(b: GraphBuilder, x: TensorValue) -> TensorValue:
    return b.add("multiply", x, b.add("nn.hard_sigmoid", x))


@pytest.mark.parametrize(
    "spelling", [_gelu_of_another_factor, _gate_of_another_value, _other_hard_sigmoid]
)
def test_what_resembles_an_activation_stays(spelling: Spelling) -> None:
    assert _after(spelling)[-1] == "multiply"
