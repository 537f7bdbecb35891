from collections.abc import Mapping, Sequence

import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Attr, Graph, TensorValue
from compiler.graph.rewrite.push_strides import MAX_NODES, push_strides
from compiler.graph.rewrite.remove_dead import remove_dead
from compiler.graph.rewrite.simplify import simplify
from tests.graph_rewrites import image, number, operators_after, weights

_HALF: dict[str, Attr] = {"axes": (2, 3), "begin": (0, 0), "end": (7, 6), "strides": (2, 2)}


def _convolution(b: GraphBuilder, x: TensorValue, window: int, stride: int = 1) -> TensorValue:
    padding = (window // 2,) * 4
    kernels = weights(4, x.type.static_shape[1], window, window)
    return b.add("nn.conv2d", x, kernels, strides=(stride,) * 2, padding=padding)


def _block(b: GraphBuilder, x: TensorValue, shortcut: TensorValue) -> TensorValue:
    """Return the end of a residual block: two convolutions with biases, and the shortcut."""
    x = b.add("nn.relu", b.add("add", _convolution(b, x, 3), weights(4, 1, 1)))
    x = b.add("add", _convolution(b, x, 1), weights(1, 4, 1, 1))
    return b.add("nn.relu", b.add("add", shortcut, x))


def _slice(b: GraphBuilder, x: TensorValue, attrs: Mapping[str, Attr] | None = None) -> TensorValue:
    """Return every second pixel of 7 x 6, or what other attributes say."""
    [value] = b.apply("strided_slice", [x], {**_HALF, **(attrs or {})})
    return value


def _strides(graph: Graph) -> list[object]:
    return [node.attrs["strides"] for node in graph.nodes if "strides" in node.attrs]


def test_strides_of_the_next_block_move_into_the_convolutions_of_a_residual_block() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(2, 4, 7, 6))
    y = _block(builder, x, x)
    graph = builder.finish([_convolution(builder, y, 1, 2), _convolution(builder, y, 1, 2)])
    assert operators_after(graph, simplify).count("strided_slice") == 1
    convolutions = [n for n in simplify(graph).nodes if n.op == "nn.conv2d"]
    strides = {n.operands[1].type.shape[2:]: n.attrs["strides"] for n in convolutions}
    assert strides == {(3, 3): (2, 2), (1, 1): (1, 1)}


@pytest.mark.parametrize("stride", [2, 3])
def test_strides_of_windows_are_multiplied(stride: int) -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(1, 3, 11, 10))
    y = _convolution(builder, _convolution(builder, x, 3, 2), 1, stride)
    graph = builder.finish([y])
    assert operators_after(graph, push_strides) == ["nn.conv2d", "nn.conv2d"]
    assert _strides(push_strides(graph))[-2:] == [(2 * stride,) * 2, (1, 1)]


def _sliced(operators: Sequence[str], *operands: tuple[int, ...]) -> Graph:
    """Return maps of a convolution of 2 x 4 x 7 x 6 and of other operands, and a slice of them."""
    builder = GraphBuilder()
    y = _convolution(builder, builder.input("x", image(2, 4, 7, 6)), 3)
    for op, shape in zip(operators, operands, strict=True):
        y = builder.add(op, y, builder.input(op, image(*shape)))
    return builder.finish([_slice(builder, y)])


@pytest.mark.parametrize(
    "shape", [(), (6,), (1,), (7, 6), (7, 1), (4, 7, 6), (4, 1, 1), (2, 4, 7, 6)]
)
def test_operands_of_maps_are_sliced_along_the_axes_that_they_have(shape: tuple[int, ...]) -> None:
    graph = _sliced(["multiply"], shape)
    is_sliced = any(n > 1 for n in shape[-2:])
    expected = ["nn.conv2d", *["strided_slice"] * is_sliced, "multiply"]
    assert sorted(operators_after(graph, push_strides)) == sorted(expected)


def test_a_value_that_others_read_is_computed_whole() -> None:
    builder = GraphBuilder()
    y = _convolution(builder, builder.input("x", image(2, 4, 7, 6)), 3)
    graph = builder.finish([_slice(builder, y), builder.add("nn.relu", y)])
    assert push_strides(graph).nodes == graph.nodes


@pytest.mark.parametrize(
    "attrs",
    [
        {"begin": (1, 0)},
        {"end": (6, 6)},
        {"begin": (6, 5), "end": (-9, -9), "strides": (-1, -2)},
        {"axes": (1, 2)},
    ],
)
def test_other_slices_stay(attrs: dict[str, Attr]) -> None:
    builder = GraphBuilder()
    y = _convolution(builder, builder.input("x", image(2, 4, 7, 6)), 3)
    graph = builder.finish([_slice(builder, y, attrs)])
    assert push_strides(graph).nodes == graph.nodes


def test_maps_that_depend_on_positions_are_computed_whole() -> None:
    builder = GraphBuilder()
    y = builder.add("tril", _convolution(builder, builder.input("x", image(2, 4, 7, 6)), 3), k=1)
    graph = builder.finish([_slice(builder, y)])
    assert operators_after(graph, push_strides) == ["nn.conv2d", "tril", "strided_slice"]


def test_the_pixels_of_a_padded_image_stay_where_they_are() -> None:
    builder = GraphBuilder()
    x = builder.input("x", image(1, 3, 7, 6))
    y = builder.add("nn.conv2d", x, weights(4, 3, 1, 1), strides=(2, 2), padding=(1, 1, 1, 1))
    graph = builder.finish([builder.add("add", y, number(1))])
    assert push_strides(graph).nodes == graph.nodes


def test_a_slice_moves_before_long_chains_step_by_step() -> None:
    builder = GraphBuilder()
    y = builder.input("x", image(2, 4, 7, 6))
    for _ in range(2000):
        y = builder.add("negative", y)
    graph = push_strides(builder.finish([_slice(builder, y)]))
    sizes = [node.output.type.num_elements for node in remove_dead(graph).nodes]
    assert sizes == [*[336] * (2000 - MAX_NODES), *[96] * (MAX_NODES + 1)]
