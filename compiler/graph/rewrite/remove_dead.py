"""Remove nodes without an effect on the results."""

from __future__ import annotations

from dataclasses import replace

from compiler.graph.nodes import Graph, Node, TensorValue


def remove_dead(graph: Graph) -> Graph:
    """Return a graph without the nodes whose results are never used; inputs stay."""
    used = {output for output in graph.outputs if isinstance(output, TensorValue)}
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if used.isdisjoint(node.outputs):
            continue
        nodes.append(node)
        used.update(x for x in node.operands if isinstance(x, TensorValue))
    return replace(graph, nodes=tuple(reversed(nodes)))
