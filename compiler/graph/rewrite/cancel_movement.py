"""Remove movements that cancel each other or move nothing."""

from __future__ import annotations

from compiler.graph.nodes import Graph, Node, Operand
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes

_RESHAPES = frozenset({"reshape", "squeeze", "expand_dims"})
_PLAIN = frozenset({"broadcast_to", "tile", "astype", "concat", "split", "strided_slice", "nn.pad"})
"""Operators that return their operand if its type is that of the result: nothing is left out, added
or converted.
"""


def cancel_movement(graph: Graph) -> Graph:
    """Return a graph in which movements that follow each other are one, or none."""
    return rewrite_nodes(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op in _RESHAPES:
        return _reshape(node, rewriter)
    if node.op == "permute_dims":
        return _permute(node, rewriter)
    if node.op in _PLAIN and _returns_operand(node):
        return (node.operands[0],)
    return None


def _returns_operand(node: Node) -> bool:
    if node.op == "concat" and len(node.operands) > 1:
        return False
    if node.op == "strided_slice" and not _goes_forward(node):
        return False
    return len(node.outputs) == 1 and node.operands[0].type == node.output.type


def _goes_forward(node: Node) -> bool:
    """Return whether a slice does not reverse the order of elements."""
    strides = node.attrs.get("strides")
    return not isinstance(strides, tuple) or all(isinstance(n, int) and n > 0 for n in strides)


def _reshape(node: Node, rewriter: Rewriter) -> Replacement:
    """Return a single reshape of what is not reshaped; the operand itself if it has the shape."""
    source: Operand = node.operands[0]
    while (inner := rewriter.producer(source)) is not None and inner.op in _RESHAPES:
        source = inner.operands[0]
    if source.type == node.output.type:
        return (source,)
    shape = node.output.type.shape
    if node.op == "reshape" and source is node.operands[0] and node.attrs["shape"] == shape:
        return None
    return (rewriter.add("reshape", source, shape=shape),)


def _permute(node: Node, rewriter: Rewriter) -> Replacement:
    order = _order(node)
    if order == tuple(range(len(order))):
        return (node.operands[0],)
    inner = rewriter.producer(node.operands[0], "permute_dims")
    if inner is None:
        return None
    before = _order(inner)
    together = tuple(before[axis] for axis in order)
    if together == tuple(range(len(together))):
        return (inner.operands[0],)
    return (rewriter.add("permute_dims", inner.operands[0], axes=together),)


def _order(node: Node) -> tuple[int, ...]:
    axes, rank = node.attrs["axes"], node.output.type.rank
    if not isinstance(axes, tuple):
        return tuple(reversed(range(rank)))
    return tuple(axis % rank for axis in axes if isinstance(axis, int))
