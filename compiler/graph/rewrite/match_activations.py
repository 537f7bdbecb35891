"""Find activations that a model spells out as products: GELU by `erf`, SiLU, hard swish."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from compiler.graph.nodes import Graph, Node, Operand
from compiler.graph.rewrite.constants import RELATIVE_ERROR, is_number, number
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes
from compiler.ir.core.dtypes import is_float

MAX_FACTORS = 4
"""Factors of a product that may be an activation. Chosen: GELU has three."""


def match_activations(graph: Graph) -> Graph:
    """Return a graph in which products that are activations are one node."""
    return rewrite_nodes(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op != "multiply" or not is_float(node.output.type.dtype):
        return None
    factors = list(_factors(node, rewriter, MAX_FACTORS))
    numbers = [value for x in factors if (value := number(x)) is not None]
    others = [x for x in factors if number(x) is None]
    if len(others) != 2:
        return None
    scale = math.prod(numbers)
    for x, gate in (others, others[::-1]):
        if x.type != node.output.type:
            continue
        op = _activation(x, gate, scale, rewriter)
        if op is not None:
            return (rewriter.add(op, x),)
    return None


def _factors(node: Node, rewriter: Rewriter, most: int) -> Iterator[Operand]:
    """Yield the factors of a product of products, as long as these are read only here."""
    for operand in node.operands:
        inner = rewriter.producer(operand, "multiply")
        if inner is not None and most > 0 and rewriter.is_read_once(operand):
            yield from _factors(inner, rewriter, most - 1)
        else:
            yield operand


def _activation(x: Operand, gate: Operand, scale: float, rewriter: Rewriter) -> str | None:
    """Return the activation that is `x * gate * scale`."""
    node = rewriter.producer(gate)
    if node is None:
        return None
    if node.op == "sigmoid" and node.operands[0] is x and _near(scale, 1):
        return "nn.silu"
    if node.op == "nn.hard_sigmoid" and node.operands[0] is x and _near(scale, 1):
        alpha, beta = node.attrs["alpha"], node.attrs["beta"]
        assert isinstance(alpha, float | int)
        assert isinstance(beta, float | int)
        return "nn.hard_swish" if _near(alpha, 1 / 6) and _near(beta, 0.5) else None
    if node.op == "add" and _near(scale, 0.5):
        return _gelu(x, node, rewriter)
    return None


def _gelu(x: Operand, total: Node, rewriter: Rewriter) -> str | None:
    """Return GELU if a sum is `erf(x / sqrt(2)) + 1`."""
    for erf, one in (total.operands, total.operands[::-1]):
        node = rewriter.producer(erf, "erf")
        if node is None or not is_number(one, 1):
            continue
        inner = rewriter.producer(node.operands[0])
        if inner is None or len(inner.operands) != 2:
            continue
        if inner.op == "divide" and inner.operands[0] is x:
            return "nn.gelu" if is_number(inner.operands[1], math.sqrt(2)) else None
        for y, factor in (inner.operands, inner.operands[::-1]):
            if inner.op == "multiply" and y is x and is_number(factor, math.sqrt(0.5)):
                return "nn.gelu"
    return None


def _near(value: float, expected: float) -> bool:
    return bool(np.isclose(value, expected, rtol=RELATIVE_ERROR, atol=0))
