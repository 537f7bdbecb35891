"""Compute what follows from constants alone when the graph is made."""

from __future__ import annotations

import numpy as np

from compiler.graph.nodes import Constant, Graph, Node, constant
from compiler.graph.operator import find_operator
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes

MAX_GROWTH = 8
"""How much larger than its operands a folded result may be: weights of bytes become float64 at
most. What grows more, such as a broadcast, is cheaper to keep than to store. Chosen.
"""
ALWAYS_BYTES = 1 << 20
"""Results up to this size are folded in any case. Chosen."""


def fold_constants(graph: Graph) -> Graph:
    """Return a graph in which nodes of constants are constants, in the types of the model."""

    def visit(node: Node, _: Rewriter) -> Replacement:
        return fold_node(node)

    return rewrite_nodes(graph, visit)


def fold_node(node: Node) -> tuple[Constant, ...] | None:
    """Return the results of a node of constants; None if they are unknown or too large."""
    operands = [x for x in node.inputs if x is None or isinstance(x, Constant)]
    is_known = len(operands) == len(node.inputs) and all(
        x is None or x.array is not None for x in operands
    )
    if not is_known or not all(value.type.is_static for value in node.outputs):
        return None
    result_bytes = sum(value.type.size_bytes for value in node.outputs)
    if result_bytes > max(ALWAYS_BYTES, MAX_GROWTH * sum(x.type.size_bytes for x in operands if x)):
        return None
    arrays = [None if x is None else x.elements for x in operands]
    with np.errstate(all="ignore"):  # NaN and infinity are results like others
        results = find_operator(node.op).apply_reference(arrays, node.attrs)
    return tuple(
        constant(np.asarray(result).astype(value.type.dtype), node.name)
        for result, value in zip(results, node.outputs, strict=True)
    )
