"""Fold constant factors into the weights of products and convolutions, and sums into one sum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler.graph.nodes import Array, Constant, Graph, Node, Operand
from compiler.graph.rewrite.constants import along, known, rounded
from compiler.graph.rewrite.convolutions import CONVOLUTIONS, is_convolution
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes
from compiler.ir.core.dtypes import is_float

_TRANSPOSED = frozenset(f"{name}_transpose" for name in CONVOLUTIONS)


def fold_scale(graph: Graph) -> Graph:
    """Return a graph in which weights have absorbed the factors after them.

    Only results of products and convolutions of floats are changed, by roundings. Others may be
    exact, and what follows, such as a rounding to integers, may depend on that.
    """
    return rewrite_nodes(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    visit = _VISITS.get(node.op)
    if visit is None or not is_float(node.output.type.dtype):
        return None
    return visit(node, rewriter)


def _subtract(node: Node, rewriter: Rewriter) -> Replacement:
    x, other = node.operands
    elements = known(other)
    if elements is None or not isinstance(other, Constant):
        return None
    return (rewriter.add("add", x, rounded(-elements, other)),)


def _divide(node: Node, rewriter: Rewriter) -> Replacement:
    x, other = node.operands
    elements = known(other)
    if elements is None or not isinstance(other, Constant):
        return None
    with np.errstate(divide="ignore", over="ignore"):
        factors = rounded(1 / elements, other)
    # A divisor beyond the range of its type has no factor.
    if not np.all(np.isfinite(factors.elements)) or not np.all(factors.elements):
        return None
    if not _is_power_of_two(elements) and not _is_product(x, rewriter):
        return None
    return (rewriter.add("multiply", x, factors),)


def _multiply(node: Node, rewriter: Rewriter) -> Replacement:
    x, other = _constant_last(node)
    factors = known(other)
    if factors is None or x.type != node.output.type:
        return None
    scaled = _scaled(x, factors, rewriter)
    return None if scaled is None else (scaled,)


def _add(node: Node, rewriter: Rewriter) -> Replacement:
    x, other = _constant_last(node)
    inner = rewriter.producer(x, "add")
    terms = known(other)
    if inner is None or terms is None or not rewriter.is_read_once(x):
        return None
    y, first = _constant_last(inner)
    earlier = known(first)
    if earlier is None or not isinstance(first, Constant) or not _is_product(y, rewriter):
        return None
    if np.broadcast_shapes(terms.shape, earlier.shape) not in (terms.shape, earlier.shape):
        return None  # both together are larger than each of them
    return (rewriter.add("add", y, rounded(terms + earlier, first)),)


_VISITS: dict[str, Callable[[Node, Rewriter], Replacement]] = {
    "subtract": _subtract,
    "divide": _divide,
    "multiply": _multiply,
    "add": _add,
}


def _is_power_of_two(elements: Array) -> bool:
    """Return whether products with these elements are exact."""
    mantissas, _ = np.frexp(elements)
    return bool(np.all(np.abs(mantissas) == 0.5))


def _is_product(x: Operand, rewriter: Rewriter) -> bool:
    """Return whether a value is a product or a convolution, perhaps plus a constant."""
    node = rewriter.producer(x)
    if node is None:
        return False
    if node.op == "add":
        y, other = _constant_last(node)
        return isinstance(other, Constant) and _is_product(y, rewriter)
    return _has_weights(node)


def _has_weights(node: Node) -> bool:
    """Return whether a node is a product, or a convolution of channels before space."""
    return node.op == "matmul" or node.op in _TRANSPOSED or is_convolution(node)


def _scaled(x: Operand, factors: Array, rewriter: Rewriter) -> Operand | None:
    """Return a value times constant factors, if a product or convolution absorbs them."""
    node = rewriter.producer(x)
    if node is None or not rewriter.is_read_once(x) or x.type.dtype != node.operands[0].type.dtype:
        return None
    if node.op == "add":
        y, other = _constant_last(node)
        terms = known(other)
        if terms is None or not isinstance(other, Constant) or y.type != x.type:
            return None
        if np.broadcast_shapes(terms.shape, factors.shape) not in (terms.shape, factors.shape):
            return None
        scaled = _scaled(y, factors, rewriter)
        if scaled is None:
            return None
        return rewriter.with_inputs(node, scaled, rounded(terms * factors, other))
    weights = _scaled_weights(node, factors)
    if weights is None:
        return None
    return rewriter.with_inputs(node, node.inputs[0], weights, *node.inputs[2:])


def _scaled_weights(node: Node, factors: Array) -> Constant | None:
    """Return the weights of a product or convolution, times factors of its channels."""
    weights = node.inputs[1] if _has_weights(node) else None
    elements = known(weights)
    if elements is None or elements.ndim < 2 or not isinstance(weights, Constant):
        return None
    rank = node.output.type.rank
    channels = along(factors, rank - 1 if node.op == "matmul" else 1, rank)
    if channels is None or (node.attrs.get("groups", 1) != 1 and node.op in _TRANSPOSED):
        return None
    axis = 0 if node.op in CONVOLUTIONS else 1
    if node.op != "matmul":
        channels = channels.reshape(-1, *[1] * (rank - 1 - axis))
    with np.errstate(over="ignore"):
        scaled = rounded(elements * channels, weights)
    # A float16 may overflow although the scaled results do not.
    return scaled if np.all(np.isfinite(scaled.elements)) else None


def _constant_last(node: Node) -> tuple[Operand, Operand]:
    """Return the operands of a node of two; if one is constant, it comes last."""
    x, other = node.operands
    return (other, x) if isinstance(x, Constant) else (x, other)
