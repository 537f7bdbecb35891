"""Turn batch norms of known statistics into a product and a sum, which convolutions absorb."""

from __future__ import annotations

import numpy as np

from compiler.graph.nodes import Constant, Graph, Node
from compiler.graph.rewrite.constants import known, rounded
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes


def split_batch_norm(graph: Graph) -> Graph:
    """Return a graph without batch norms of constant parameters."""
    return rewrite_nodes(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op != "nn.batch_norm":
        return None
    x, gamma, *_ = node.operands
    parameters = [array for p in node.operands[1:] if (array := known(p)) is not None]
    if len(parameters) < 4 or not isinstance(gamma, Constant):
        return None
    scales, shifts, means, variances = parameters
    epsilon, axis = node.attrs["epsilon"], node.attrs["axis"]
    assert isinstance(epsilon, float | int)
    assert isinstance(axis, int)
    factors = scales / np.sqrt(variances + epsilon)
    shape = (-1, *[1] * (x.type.rank - 1 - axis % x.type.rank))
    product = rewriter.add("multiply", x, rounded(factors.reshape(shape), gamma))
    offsets = (shifts - means * factors).reshape(shape)
    return (rewriter.add("add", product, rounded(offsets, gamma)),)
