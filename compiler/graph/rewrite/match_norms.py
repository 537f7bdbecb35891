"""Find layer norms and RMS norms that a model spells out, and give them their scales and shifts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from compiler.graph.extents import is_static, static
from compiler.graph.nodes import Array, Constant, Graph, Node, Operand, constant
from compiler.graph.rewrite.constants import is_number, known, number, rounded
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes
from compiler.ir.core.dtypes import is_float


def match_norms(graph: Graph) -> Graph:
    """Return a graph in which norms over the last axes are one node."""
    return rewrite_nodes(graph, _visit)


class _Root(NamedTuple):
    """`sqrt(variance + epsilon)`."""

    variance: Operand
    epsilon: float


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op == "divide":
        x, divisor = node.operands
        root = _root(divisor, rewriter)
        norm = None if root is None else _norm(x, root, rewriter)
        return None if norm is None else (norm,)
    if node.op not in ("multiply", "add"):
        return None
    for x, other in (node.operands, node.operands[::-1]):
        if node.op == "multiply":
            root = _inverse_root(other, rewriter)
            norm = None if root is None else _norm(x, root, rewriter)
            if norm is not None:
                return (norm,)
        scaled = _with_parameter(node, x, other, rewriter)
        if scaled is not None:
            return (scaled,)
    return None


# --- from its parts to a norm -----------------------------------------------------------------


def _root(operand: Operand, rewriter: Rewriter) -> _Root | None:
    """Return the parts of `sqrt(variance + epsilon)`."""
    node = rewriter.producer(operand)
    if node is None:
        return None
    is_power = node.op == "power" and is_number(node.operands[1], 0.5)
    if node.op != "sqrt" and not is_power:
        return None
    return _sum(node.operands[0], rewriter)


def _inverse_root(operand: Operand, rewriter: Rewriter) -> _Root | None:
    """Return the parts of `1 / sqrt(variance + epsilon)`."""
    node = rewriter.producer(operand)
    if node is None:
        return None
    if node.op == "divide" and is_number(node.operands[0], 1):
        return _root(node.operands[1], rewriter)
    if node.op == "rsqrt" or (node.op == "power" and is_number(node.operands[1], -0.5)):
        return _sum(node.operands[0], rewriter)
    return None


def _sum(operand: Operand, rewriter: Rewriter) -> _Root | None:
    node = rewriter.producer(operand, "add")
    if node is None:
        return None
    for variance, other in (node.operands, node.operands[::-1]):
        epsilon = number(other)
        if epsilon is not None:
            return _Root(variance, epsilon)
    return None


def _norm(x: Operand, root: _Root, rewriter: Rewriter) -> Operand | None:
    """Return `x / root` as a norm, if the variance is that of `x`."""
    mean = rewriter.producer(root.variance, "mean")
    if mean is None or not _is_square(mean.operands[0], x, rewriter):
        return None
    axes = _last_axes(mean)
    if axes is None or not is_float(x.type.dtype):
        return None
    inner = x.type.shape[x.type.rank - len(axes) :]
    if not is_static(inner):
        return None
    extents = static(inner)
    ones = constant(np.ones(extents, x.type.dtype))
    centred = _centred(x, axes, rewriter)
    if centred is None:
        return rewriter.add("nn.rms_norm", x, ones, axes=axes, epsilon=root.epsilon)
    zeros = constant(np.zeros(extents, x.type.dtype))
    return rewriter.add("nn.layer_norm", centred, ones, zeros, axes=axes, epsilon=root.epsilon)


def _is_square(operand: Operand, x: Operand, rewriter: Rewriter) -> bool:
    node = rewriter.producer(operand)
    if node is None or node.op not in ("power", "multiply") or node.operands[0] is not x:
        return False
    return node.operands[1] is x if node.op == "multiply" else is_number(node.operands[1], 2)


def _last_axes(mean: Node) -> tuple[int, ...] | None:
    """Return the axes of a mean that keeps them, counted from the end; None if others follow."""
    axes, rank = mean.attrs["axis"], mean.operands[0].type.rank
    if not isinstance(axes, tuple) or not mean.attrs["keepdims"]:
        return None
    ordered = sorted(axis % rank for axis in axes if isinstance(axis, int))
    if not ordered or ordered != list(range(ordered[0], rank)):
        return None
    return tuple(axis - rank for axis in ordered)


def _centred(x: Operand, axes: tuple[int, ...], rewriter: Rewriter) -> Operand | None:
    """Return the `y` of which `x` is `y - mean(y)`."""
    node = rewriter.producer(x, "subtract")
    mean = None if node is None else rewriter.producer(node.operands[1], "mean")
    if node is None or mean is None or mean.operands[0] is not node.operands[0]:
        return None
    return node.operands[0] if _last_axes(mean) == axes else None


# --- scales and shifts ------------------------------------------------------------------------


def _with_parameter(node: Node, x: Operand, other: Operand, rewriter: Rewriter) -> Operand | None:
    """Return a norm times a constant, or plus one, as a norm."""
    norm = rewriter.producer(x)
    if norm is None or norm.op not in ("nn.layer_norm", "nn.rms_norm"):
        return None
    if not rewriter.is_read_once(x) or node.output.type != x.type:
        return None
    elements = _parameter(other, norm)
    if elements is None:
        return None
    source, *parameters = norm.operands
    arrays = [array for p in parameters if (array := known(p)) is not None]
    if len(arrays) < len(parameters):
        return None
    if node.op == "multiply":
        arrays = [array * elements for array in arrays]
    elif len(arrays) == 2:
        arrays[1] = arrays[1] + elements
    else:
        return None
    constants = [
        rounded(array, p)
        for array, p in zip(arrays, parameters, strict=True)
        if isinstance(p, Constant)
    ]
    return rewriter.add(norm.op, source, *constants, **norm.attrs)


def _parameter(operand: Operand, norm: Node) -> Array | None:
    """Return a constant that varies on the axes of a norm alone, in their shape."""
    elements = known(operand)
    extents = norm.operands[1].type.static_shape
    if elements is None or elements.size not in (1, math.prod(extents)):
        return None
    trimmed = elements.shape[max(0, elements.ndim - len(extents)) :]
    if math.prod(trimmed) != elements.size:
        return None
    return np.broadcast_to(elements.reshape(trimmed), extents)
