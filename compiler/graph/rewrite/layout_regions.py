"""Which nodes gain if their channels come last.

A region holds convolutions of small images, and the maps, slices of pixels and reductions of what
they compute. Values that enter or leave it are transposed.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.graph.nodes import Constant, Graph, Node, Operand, TensorValue
from compiler.graph.rewrite.convolutions import is_convolution, is_plain_map

REDUCTIONS = frozenset({"sum", "mean", "max", "min"})
MAX_PIXELS = 256
"""Pixels of a small image. Source: one core of a Zen 4, mobilenetv2 and ResNet-50, each
convolution in its model with the first proposals: 1 x 1 convolutions of 14 x 14 pixels take 0.70 to
0.82 of the time with channels last, of 7 x 7 pixels 0.64 to 0.99, of 28 x 28 pixels 0.9 to 1.17,
of 56 x 56 pixels 0.97 to 1.8; Winograd's of 14 x 14 pixels 0.9, of 7 x 7 pixels 0.84.
"""
MIN_CHANNELS = 32
"""Fewer channels do not fill the vectors of a register tile: two of AVX-512. Chosen."""
FLOPS_PER_MOVED = 64
"""Operations of a region that pay for the transposition of an element. Source: the same
measurements: a transposition takes 0.1 ns an element, and 64 operations of a convolution take 0.7
ns, of which the layout saves a fifth.
"""


def channels_last_values(graph: Graph, max_pixels: int) -> frozenset[TensorValue]:
    """Return the results of the nodes to compute with channels last.

    Args:
        graph: The graph.
        max_pixels: The pixels of the largest image that is small.
    """
    return _Regions(graph, max_pixels).chosen()


def is_by_channel(node: Node) -> bool:
    """Return whether a convolution convolves each channel alone."""
    groups = node.attrs["groups"]
    return groups == node.operands[0].type.shape[1] == node.operands[1].type.shape[0]


def is_number(x: Operand) -> bool:
    """Return whether an operand of a map is one element, in whatever layout."""
    return x.type.num_elements == 1 and x.type.rank <= 2


class _Regions:
    """The nodes of a graph by regions, each named by the result of one of its nodes."""

    def __init__(self, graph: Graph, max_pixels: int) -> None:
        self._graph = graph
        self._parents: dict[TensorValue, TensorValue] = {}
        for node in graph.nodes:
            if len(node.outputs) != 1 or not _has_images(node):
                continue
            if _is_small_convolution(node, max_pixels) or self._follows(node):
                self._parents[node.output] = node.output
                for x in self._inner(node.operands):
                    self._parents[self._find(x)] = node.output

    def chosen(self) -> frozenset[TensorValue]:
        """Return the results of the nodes of the regions that gain."""
        regions = {value: self._find(value) for value in self._parents}
        work = dict.fromkeys(regions.values(), 0)
        moved: dict[tuple[TensorValue, Operand], int] = {}
        for node in self._graph.nodes:
            region = regions.get(node.output) if len(node.outputs) == 1 else None
            if region is not None:
                work[region] += _saved_work(node)
                outside = (x for x in node.operands if not isinstance(x, Constant))
                moved |= {(region, x): _moved(x) for x in outside if regions.get(x) != region}
            else:
                moved |= {(regions[x], x): _moved(x) for x in self._inner(node.operands)}
        returned = self._inner(self._graph.outputs)
        moved |= {(regions[x], x): _moved(x) for x in returned}
        for (region, _), elements in moved.items():
            work[region] -= FLOPS_PER_MOVED * elements
        return frozenset(value for value, region in regions.items() if work[region] > 0)

    def _find(self, value: TensorValue) -> TensorValue:
        while self._parents[value] is not value:
            self._parents[value] = self._parents[self._parents[value]]
            value = self._parents[value]
        return value

    def _inner(self, operands: Iterable[Operand]) -> list[TensorValue]:
        """Return the operands that nodes of regions make."""
        return [x for x in operands if isinstance(x, TensorValue) and x in self._parents]

    def _follows(self, node: Node) -> bool:
        """Return whether a node can take what a region makes with channels last."""
        if node.op in REDUCTIONS:
            keeps_channels = 1 not in _axes(node)
            return bool(self._inner(node.operands)) and keeps_channels
        if node.op == "strided_slice":
            return bool(self._inner(node.operands)) and not {0, 1} & set(_axes(node))
        same = (x for x in node.operands if x.type.shape == node.output.type.shape)
        return is_plain_map(node) and bool(self._inner(same)) and all(map(_fits, node.operands))


def _has_images(node: Node) -> bool:
    """Return whether a node takes images, and all of its types are static."""
    x = node.operands[0].type if node.operands else None
    return x is not None and x.rank == 4 and all(y.type.is_static for y in _values(node))


def _values(node: Node) -> tuple[Operand, ...]:
    return (*node.operands, *node.outputs)


def _axes(node: Node) -> list[int]:
    """Return the axes of a reduction or a slice of images."""
    axes = node.attrs["axes" if node.op == "strided_slice" else "axis"]
    return [n % 4 for n in axes if isinstance(n, int)] if isinstance(axes, tuple) else [0, 1, 2, 3]


def _is_small_convolution(node: Node, max_pixels: int) -> bool:
    weights = node.operands[1] if node.op == "nn.conv2d" and is_convolution(node) else None
    if not isinstance(weights, Constant) or weights.array is None:
        return False
    if node.output.type.dtype != "float32":
        return False
    _, channels, height, width = node.output.type.static_shape
    if channels < MIN_CHANNELS or not 1 < height * width <= max_pixels:
        return False
    return node.attrs["groups"] == 1 or is_by_channel(node)


def _fits(x: Operand) -> bool:
    """Return whether an operand of a map can be transposed."""
    is_known = isinstance(x, Constant) and x.array is not None
    return is_number(x) or x.type.rank == 4 or is_known


def _saved_work(node: Node) -> int:
    """Return the operations of a convolution that gains; one of each channel alone does not."""
    if node.op != "nn.conv2d" or is_by_channel(node):
        return 0
    weights = node.operands[1].type
    return 2 * node.output.type.num_elements * weights.num_elements // weights.static_shape[0]


def _moved(x: Operand) -> int:
    """Return the elements that a transposition of a value moves."""
    shape = x.type.static_shape
    return 0 if len(shape) != 4 or shape[2:] == (1, 1) else x.type.num_elements
