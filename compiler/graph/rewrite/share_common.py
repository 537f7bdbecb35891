"""Compute what several nodes compute alike only once."""

from __future__ import annotations

from collections.abc import Hashable

from compiler.graph.nodes import Attr, Graph, Node
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes


def share_common(graph: Graph) -> Graph:
    """Return a graph in which equal operators of equal operands are one node."""
    nodes: dict[Hashable, Node] = {}

    def visit(node: Node, _: Rewriter) -> Replacement:
        first = nodes.setdefault(_key(node), node)
        return None if first is node else first.outputs

    return rewrite_nodes(graph, visit)


def _key(node: Node) -> Hashable:
    attrs = tuple((name, attr_key(value)) for name, value in node.attrs.items())
    return node.op, node.inputs, attrs, tuple(value.type for value in node.outputs)


def attr_key(value: Attr) -> Hashable:
    """Return a key that distinguishes what `==` does not: 1 and True, 0.0 and -0.0."""
    if isinstance(value, tuple):
        return tuple(map(attr_key, value))
    if isinstance(value, float):
        return value.hex()
    return type(value).__name__, value
