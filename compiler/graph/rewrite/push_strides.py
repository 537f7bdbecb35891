"""Compute only those elements of images that strides select.

A convolution of one pixel with strides reads every second pixel, say. It becomes a slice and a
convolution without strides. If a slice is the only reader of an image, it moves before the maps
that make the image, and becomes the stride of a convolution before them. Residual networks whose
blocks begin with strides gain: the last convolutions of the block before compute a quarter of the
pixels.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.graph.nodes import Graph, Node, Operand, TensorValue
from compiler.graph.rewrite.convolutions import is_convolution, is_plain_map, is_pointwise
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes

MAX_NODES = 64
"""Nodes that one slice moves before in one go, which bounds the recursion: a residual block has
about ten. Chosen.
"""


def push_strides(graph: Graph) -> Graph:
    """Return a graph in which strides stand before the computation of what they leave out."""
    return rewrite_nodes(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    selection = _Selection(rewriter)
    if is_convolution(node) and is_pointwise(node):
        steps = _steps(node)
        if any(step > 1 for step in steps) and node.operands[0].type.is_static:
            return (selection.pointwise(node, steps),)
    if node.op == "strided_slice" and (kept_steps := _pixel_steps(node)):
        x = node.operands[0]
        return None if selection.maker(x) is None else (selection.select(x, kept_steps),)
    return None


class _Selection:
    """The nodes that a slice of pixels moves before."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._num_nodes = 0

    def select(self, x: Operand, steps: tuple[int, ...]) -> TensorValue:
        """Return every n-th element of a value along its last axes, one step for each of these."""
        node = self.maker(x)
        self._num_nodes += 1
        if node is None:
            return _sliced(x, steps, self._rewriter)
        if not is_convolution(node):
            inputs = [self._operand(y, node, steps) for y in node.inputs]
            return self._rewriter.with_inputs(node, *inputs)
        all_steps = tuple(a * b for a, b in zip(_steps(node), steps, strict=True))
        if is_pointwise(node):
            return self.pointwise(node, all_steps)
        return self._rewriter.with_inputs(_with_strides(node, all_steps), *node.inputs)

    def pointwise(self, node: Node, steps: tuple[int, ...]) -> TensorValue:
        """Return a convolution of one pixel that reads every n-th pixel of its image."""
        data, *others = node.inputs
        assert data is not None, "a convolution has an image"
        plain = _with_strides(node, (1,) * len(steps))
        return self._rewriter.with_inputs(plain, self.select(data, steps), *others)

    def maker(self, x: Operand) -> Node | None:
        """Return the node before which a slice of its result can stand: the only reader of it."""
        node = self._rewriter.producer(x)
        if node is None or not self._rewriter.is_read_once(x) or self._num_nodes >= MAX_NODES:
            return None
        if not all(y.type.is_static for y in (*node.operands, *node.outputs)):
            return None
        return node if is_plain_map(node) or is_convolution(node) else None

    def _operand(self, x: Operand | None, node: Node, steps: tuple[int, ...]) -> Operand | None:
        """Return what a map reads of an operand; along axes of one element that is the same."""
        if x is None:
            return None
        rank = node.output.type.rank
        shape = x.type.static_shape[2 - rank :]
        last_steps = steps[len(steps) - len(shape) :]
        own_steps = tuple(1 if n == 1 else step for n, step in zip(shape, last_steps, strict=True))
        if all(step == 1 for step in own_steps):
            return x
        if x.type.rank == rank:
            return self.select(x, own_steps)
        return _sliced(x, own_steps, self._rewriter)


def _sliced(x: Operand, steps: tuple[int, ...], rewriter: Rewriter) -> TensorValue:
    shape = x.type.static_shape
    axes = tuple(range(len(shape) - len(steps), len(shape)))
    end = tuple(shape[axis] for axis in axes)
    begin = (0,) * len(steps)
    return rewriter.add("strided_slice", x, axes=axes, begin=begin, end=end, strides=steps)


def _pixel_steps(node: Node) -> tuple[int, ...] | None:
    """Return the steps of a slice that keeps every n-th pixel, one for each spatial axis."""
    x = node.operands[0].type
    if not x.is_static or x.rank < 3:
        return None
    steps = [1] * x.rank
    for axis, first, last, step in _slices(node):
        if first != 0 or last < x.static_shape[axis] or step < 1:
            return None
        steps[axis] = step
    return tuple(steps[2:]) if steps[:2] == [1, 1] else None


def _slices(node: Node) -> list[tuple[int, int, int, int]]:
    """Return the axis, the begin, the end and the step of each axis that is sliced."""
    columns = [node.attrs[name] for name in ("axes", "begin", "end", "strides")]
    return list(zip(*columns, strict=True))


def _with_strides(node: Node, strides: tuple[int, ...]) -> Node:
    return replace(node, attrs={**node.attrs, "strides": strides})


def _steps(node: Node) -> tuple[int, ...]:
    strides = node.attrs["strides"]
    assert isinstance(strides, tuple), "a convolution has strides"
    return tuple(int(step) for step in strides if isinstance(step, int))
