"""Remove tensors without elements: there is nothing to compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compiler.graph.nodes import Constant, Graph, Node, Operand, constant
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes


def drop_empty(graph: Graph) -> Graph:
    """Return a graph in which tensors without elements are constants, and no part of a join."""
    outputs = tuple(map(_constant_if_empty, graph.outputs))
    return rewrite_nodes(replace(graph, outputs=outputs), _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if all(map(_is_empty, node.outputs)):
        return tuple(map(_constant_if_empty, node.outputs))
    if not any(map(_is_empty, node.operands)):
        return None
    if node.op == "concat":
        parts = [x for x in node.operands if not _is_empty(x)]
        return (rewriter.add("concat", *parts, **node.attrs),)
    operands = [None if x is None else _constant_if_empty(x) for x in node.inputs]
    if all(new is old for new, old in zip(operands, node.inputs, strict=True)):
        return None
    return rewriter.add_all(node.op, *operands, **node.attrs)


def _is_empty(operand: Operand) -> bool:
    return operand.type.is_static and operand.type.num_elements == 0


def _constant_if_empty(operand: Operand) -> Operand:
    if isinstance(operand, Constant) or not _is_empty(operand):
        return operand
    return constant(np.empty(operand.type.static_shape, operand.type.dtype), operand.name)
