from collections.abc import Sequence

import numpy as np
import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Constant, Graph, TensorType, TensorValue, constant
from compiler.graph.rewrite import layout_regions
from compiler.graph.rewrite.channels_last import channels_last
from compiler.graph.text.parser import parse_graph
from tests.graph_rewrites import operators_after
from tests.plan_runner import compile_and_compare
from tests.targets import here

_RNG = np.random.default_rng(0)
_CHANNELS = 32


def _weights(*shape: int) -> Constant:
    return constant(_RNG.uniform(-0.5, 0.5, shape).astype(np.float32))


def _image(
    b: GraphBuilder, size: int = 7, channels: int = _CHANNELS, batch: int = 1
) -> TensorValue:
    return b.input("x", TensorType((batch, channels, size, size), "float32"))


def _convolution(
    b: GraphBuilder, x: TensorValue, window: int = 1, stride: int = 1, channels: int = 64
) -> TensorValue:
    kernel = _weights(channels, x.type.static_shape[1], window, window)
    padding = (window // 2,) * 4
    return b.add("nn.conv2d", x, kernel, strides=(stride,) * 2, padding=padding)


def _by_channel(b: GraphBuilder, x: TensorValue) -> TensorValue:
    channels = x.type.static_shape[1]
    weights = _weights(channels, 1, 3, 3)
    return b.add("nn.conv2d", x, weights, padding=(1, 1, 1, 1), groups=channels)


def _bottleneck(b: GraphBuilder, x: TensorValue) -> TensorValue:
    """Return an inverted residual: wide pixels, windows in each channel, narrow pixels, the sum."""
    channels = x.type.static_shape[1]
    y = b.add("add", _convolution(b, x, channels=4 * channels), _weights(4 * channels, 1, 1))
    y = b.add("nn.relu", b.add("add", _by_channel(b, y), _weights(1, 4 * channels, 1, 1)))
    return b.add("add", _convolution(b, y, channels=channels), x)


def _classifier(batch: int = 1) -> Graph:
    b = GraphBuilder()
    x = _bottleneck(b, _bottleneck(b, _image(b, batch=batch)))
    x = b.add("mean", x, axis=(-2, -1), keepdims=True)
    flat = b.add("reshape", x, shape=(batch, _CHANNELS))
    return b.finish([b.add("matmul", flat, _weights(_CHANNELS, 3))])


def _after(graph: Graph) -> list[str]:
    return operators_after(graph, channels_last, tolerance=1e-9)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_region_has_one_transposition_at_its_border_and_products_inside(batch: int) -> None:
    graph = _classifier(batch)
    operators = _after(graph)
    assert operators.count("matmul") == 5
    assert operators.count("permute_dims") == 2  # the last one moves nothing: 1 x 1 pixels
    layouts = {n.attrs["data_layout"] for n in channels_last(graph).nodes if n.op == "nn.conv2d"}
    assert layouts == {"NHWC"}


def test_what_has_been_rewritten_stays_so() -> None:
    rewritten = channels_last(_classifier())
    assert channels_last(rewritten) == rewritten
    constants = {c.digest: c.elements for c in rewritten.constants()}
    parsed = parse_graph(rewritten.script(), constants=constants)
    assert parsed.script() == rewritten.script()


def test_the_kernels_compute_the_same_with_in_place_results_and_a_poisoned_arena() -> None:
    model = compile_and_compare(_classifier(), here())
    assert model.num_channels_last == 6


@pytest.mark.parametrize(
    ("size", "channels"),
    [(20, 64), (7, 16)],
    ids=["large images", "few channels"],
)
def test_other_convolutions_keep_their_layout(size: int, channels: int) -> None:
    b = GraphBuilder()
    graph = b.finish([_convolution(b, _image(b, size), 3, channels=channels)])
    assert channels_last(graph) is graph


@pytest.mark.parametrize(("max_pixels", "num_products"), [(0, 0), (399, 0), (400, 1)])
def test_the_limit_says_which_images_are_small(max_pixels: int, num_products: int) -> None:
    b = GraphBuilder()
    graph = b.finish([_convolution(b, _image(b, 20, channels=128))])
    operators = [node.op for node in channels_last(graph, max_pixels).nodes]
    assert operators.count("matmul") == num_products


def test_convolutions_that_save_less_than_the_transpositions_keep_their_layout() -> None:
    b = GraphBuilder()
    graph = b.finish([_by_channel(b, _convolution(b, _image(b)))])
    assert channels_last(graph) is graph


def test_convolutions_by_weights_that_are_not_known_keep_their_layout() -> None:
    b = GraphBuilder()
    weights = b.input("w", TensorType((256, 256, 3, 3), "float32"))
    graph = b.finish([b.add("nn.conv2d", _image(b, channels=256), weights)])
    assert channels_last(graph) is graph


def test_a_gate_of_one_pixel_does_not_move_the_large_image_that_it_scales() -> None:
    b = GraphBuilder()
    x = _image(b, 20)
    gate = b.add("mean", _bottleneck(b, _convolution(b, x, 3, 3)), axis=(2, 3), keepdims=True)
    narrow = _convolution(b, gate, channels=_CHANNELS)
    rewritten = channels_last(b.finish([b.add("multiply", x, b.add("sigmoid", narrow))]))
    assert rewritten.nodes[-1].inputs[0] is x


@pytest.mark.parametrize("batch", [1, 2])
def test_a_gate_scales_the_pixels_of_its_own_image(batch: int) -> None:
    b = GraphBuilder()
    x = _convolution(b, _image(b, channels=128, batch=batch), channels=128)
    gate = b.add("mean", x, axis=(2, 3), keepdims=True)
    assert "matmul" in _after(b.finish([b.add("multiply", x, gate)]))


# --- random regions -------------------------------------------------------------------------------


def _random_graph(seed: int) -> Graph:
    """Return convolutions of small images with all kinds of nodes among them."""
    rng = np.random.default_rng(seed)
    b = GraphBuilder()
    values = [_image(b, 6, batch=int(rng.integers(1, 3)))]
    for _ in range(10):
        x = values[int(len(values) * rng.random() ** 0.4)]
        values.append(_random_node(b, x, values, rng))
    return b.finish([*values[-2:], values[len(values) // 2]])


def _random_node(
    b: GraphBuilder, x: TensorValue, values: Sequence[TensorValue], rng: np.random.Generator
) -> TensorValue:
    batch, channels, height, _ = x.type.static_shape
    alike = [y for y in values if y.type == x.type]
    gates = [y for y in values if y.type.static_shape == (batch, channels, 1, 1)]
    operands: list[TensorValue | Constant] = [
        *(alike[rng.integers(len(alike))] for _ in range(3)),
        *gates,
        _weights(channels, 1, 1),
        _weights(1, channels, height, 1),
        _weights(1, 1, 1, 1),
        _weights(),
    ]
    other = operands[rng.integers(len(operands))]
    match rng.integers(9):
        case 0 | 1:
            return _convolution(b, x, channels=_CHANNELS)
        case 2:
            return _convolution(b, x, 3, int(rng.integers(1, 3)), channels=_CHANNELS)
        case 3:
            return _by_channel(b, x)
        case 4:
            return b.add("mean", x, axis=(2, 3), keepdims=True)
        case 5:
            return b.add("strided_slice", x, axes=(2, 3), begin=(0, 0), end=(9, 9), strides=(2, 1))
        case 6:
            return b.add("nn.softmax", x, axis=1)
        case 7:
            return b.add("multiply", other, x)
        case _:
            return b.add("add", x, other)


@pytest.mark.parametrize("seed", range(40))
def test_random_regions_compute_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_regions, "FLOPS_PER_MOVED", 0)
    _after(_random_graph(seed))


@pytest.mark.parametrize("seed", range(3))
def test_random_regions_run_as_kernels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_regions, "FLOPS_PER_MOVED", 0)
    compile_and_compare(_random_graph(seed), here(), tolerance=1e-3)
