"""Facts about quantized values, for rewrites."""

from __future__ import annotations

from compiler.graph.nodes import Array, Constant, Node, Operand
from compiler.graph.rewrite.rewriter import Rewriter
from compiler.ir.core.dtypes import bits, is_integer

MOVES = frozenset({"permute_dims", "reshape", "squeeze", "expand_dims", "flip"})
"""Movements that leave all elements in the tensor, and add none."""


def is_whole(node: Node) -> bool:
    """Return whether a quantization, or its inverse, has one scale for the whole tensor."""
    return all(x.type.is_static and x.type.num_elements == 1 for x in node.operands[1:])


def zero_point_of(node: Node) -> Operand | None:
    """Return the zero point of a quantization or its inverse; None if it is known to be zero."""
    point = node.inputs[2] if len(node.inputs) > 2 else None
    elements = elements_of(point)
    return point if elements is None or elements.any() else None


def elements_of(operand: Operand | None) -> Array | None:
    """Return the elements of a constant; None if it has none here, or the operand is another."""
    return operand.array if isinstance(operand, Constant) else None


def known_integer(operand: Operand | None) -> int | None:
    """Return the only element of a constant of integers, 0 for no operand; None for others."""
    if operand is None:
        return 0
    elements = elements_of(operand)
    is_one = elements is not None and elements.size == 1 and is_integer(operand.type.dtype)
    return int(elements.reshape(-1)[0]) if elements is not None and is_one else None


def bytes_made_float(operand: Operand | None, rewriter: Rewriter) -> Node | None:
    """Return the `dequantize` of integers of 8 bits that makes an operand, if there is one."""
    node = rewriter.producer(operand, "dequantize")
    if node is None or node.attrs["block_size"]:
        return None
    dtype = node.operands[0].type.dtype
    return node if is_integer(dtype) and bits(dtype) == 8 else None
