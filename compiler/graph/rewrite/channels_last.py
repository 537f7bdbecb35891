"""Compute convolutions of small images with channels last, so that vectors are full.

Vectors run along the last axis. Rows of 14 or 7 pixels leave lanes empty; channels are many there.
Images enter a region of such nodes by a transposition, and leave it by one. Inside, a convolution
of one pixel is a product of the matrix of all pixels: schedules of products are the better ones.

    conv2d(x, w)  ->  permute(matmul(rows(permute(x)), w'))
"""

from __future__ import annotations

from compiler.graph.nodes import Constant, Graph, Node, Operand, TensorValue, constant
from compiler.graph.operators.layouts import ConvLayouts, arranged
from compiler.graph.rewrite.cancel_movement import cancel_movement
from compiler.graph.rewrite.convolutions import is_pointwise
from compiler.graph.rewrite.layout_regions import (
    MAX_PIXELS,
    REDUCTIONS,
    channels_last_values,
    is_by_channel,
    is_number,
)
from compiler.graph.rewrite.remove_dead import remove_dead
from compiler.graph.rewrite.rewriter import Replacement, Rewriter
from compiler.graph.rewrite.share_common import share_common

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def channels_last(graph: Graph, max_pixels: int = MAX_PIXELS) -> Graph:
    """Return a graph in which convolutions of small images have their channels last.

    Args:
        graph: The graph.
        max_pixels: The pixels of the largest image that is small; 0 for no such images.
    """
    chosen = channels_last_values(graph, max_pixels)
    if not chosen:
        return graph
    graph = Rewriter(graph).run(_Layouts(chosen).visit)
    return remove_dead(cancel_movement(share_common(remove_dead(graph))))


class _Layouts:
    """The replacement of each node whose result is chosen."""

    def __init__(self, chosen: frozenset[TensorValue]) -> None:
        self._chosen = chosen

    def visit(self, node: Node, rewriter: Rewriter) -> Replacement:
        """Return the result of a node with channels last, transposed back."""
        if not self._chosen.intersection(node.outputs):
            return None
        if node.op == "nn.conv2d":
            result = _convolution(node, rewriter)
        elif node.op in REDUCTIONS:
            result = _reduction(node, rewriter)
            if not node.attrs["keepdims"]:
                return (result,)
        elif node.op == "strided_slice":
            result = _slice(node, rewriter)
        else:
            result = _map(node, rewriter)
        if result.type.rank == 2:
            result = rewriter.add("reshape", result, shape=_last_shape(node.output))
        return (rewriter.add("permute_dims", result, axes=_TO_FIRST),)


def _convolution(node: Node, rewriter: Rewriter) -> TensorValue:
    """Return the pixels with channels last, as rows of a matrix or as images."""
    x, weights = node.operands
    assert isinstance(weights, Constant), "regions have convolutions by constants"
    plain, last = ConvLayouts.first(2), ConvLayouts.last(2, by_channel=is_by_channel(node))
    kernel = constant(arranged(weights.elements, plain.kernel, last.kernel), weights.name)
    if is_pointwise(node) and node.attrs["strides"] == (1, 1) and node.attrs["groups"] == 1:
        matrix = constant(kernel.elements[0, 0], weights.name)
        return rewriter.add("matmul", _rows(_images(x, rewriter), rewriter), matrix)
    attrs = {**node.attrs, "data_layout": last.data, "kernel_layout": last.kernel}
    return rewriter.add(node.op, _images(x, rewriter), kernel, **attrs)


def _map(node: Node, rewriter: Rewriter) -> TensorValue:
    is_matrix = any(_is_matrix(x, rewriter) for x in node.operands)
    is_matrix = is_matrix and all(is_number(x) or _is_row_wise(x, node) for x in node.operands)
    inputs: list[Operand | None] = []
    for x in node.inputs:
        if x is None or is_number(x):
            inputs.append(x)
            continue
        images = _images(x, rewriter)
        inputs.append(_rows(images, rewriter) if is_matrix else images)
    return rewriter.with_inputs(node, *inputs)


def _reduction(node: Node, rewriter: Rewriter) -> TensorValue:
    axes = node.attrs["axis"]
    assert isinstance(axes, tuple), "regions have reductions along some axes"
    moved = tuple(sorted(_TO_LAST.index(n % 4) for n in axes if isinstance(n, int)))
    attrs = {**node.attrs, "axis": moved}
    return rewriter.add(node.op, _images(node.operands[0], rewriter), **attrs)


def _slice(node: Node, rewriter: Rewriter) -> TensorValue:
    axes = node.attrs["axes"]
    assert isinstance(axes, tuple), "a slice has axes"
    attrs = {**node.attrs, "axes": tuple(n % 4 - 1 for n in axes if isinstance(n, int))}
    return rewriter.add(node.op, _images(node.operands[0], rewriter), **attrs)


def _images(x: Operand, rewriter: Rewriter) -> Operand:
    """Return an operand with channels last, of rank 4."""
    if isinstance(x, Constant) and x.array is not None:
        elements = x.elements.reshape((1,) * (4 - x.type.rank) + x.elements.shape)
        return constant(elements.transpose(_TO_LAST), x.name)
    inner = _inner(x, rewriter)
    return rewriter.add("permute_dims", x, axes=_TO_LAST) if inner is None else inner


def _inner(x: Operand, rewriter: Rewriter) -> Operand | None:
    """Return what has been transposed back; None for another value."""
    node = rewriter.producer(x, "permute_dims")
    return node.operands[0] if node is not None and node.attrs["axes"] == _TO_FIRST else None


def _is_matrix(x: Operand, rewriter: Rewriter) -> bool:
    """Return whether the pixels of a value have been computed as rows of a matrix."""
    inner = _inner(x, rewriter)
    node = None if inner is None else rewriter.producer(inner, "reshape")
    return node is not None and node.operands[0].type.rank == 2


def _is_row_wise(x: Operand, node: Node) -> bool:
    """Return whether an operand of a map has each pixel of the result, or one for all of them."""
    shape = node.output.type.static_shape
    own_shape = (1,) * (4 - x.type.rank) + x.type.static_shape
    return own_shape == shape or (own_shape[0], *own_shape[2:]) == (1, 1, 1)


def _rows(x: Operand, rewriter: Rewriter) -> Operand:
    """Return images with channels last as a matrix of a row for each pixel."""
    *pixels, channels = x.type.static_shape
    shape = (pixels[0] * pixels[1] * pixels[2], channels)
    if isinstance(x, Constant):
        return constant(x.elements.reshape(shape), x.name)
    return rewriter.add("reshape", x, shape=shape)


def _last_shape(x: TensorValue) -> tuple[int, ...]:
    shape = x.type.static_shape
    return tuple(shape[axis] for axis in _TO_LAST)
