"""Multiply integers themselves if both operands of a product are floats that are made of them.

    ((a - p) * s) @ ((b - q) * t)
        ->  (a @ b - p * (sum(b) - k * q) - q * sum(a)) * (s * t)

Sums are exact in 32 bits. Those of constant weights are constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from compiler.graph.nodes import Constant, Graph, Node, Operand, constant
from compiler.graph.rewrite.convolutions import is_convolution
from compiler.graph.rewrite.quantized import (
    MOVES,
    bytes_made_float,
    elements_of,
    is_whole,
    known_integer,
    zero_point_of,
)
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes
from compiler.ir.core.dtypes import DType, is_signed, smallest_and_largest, sum_dtype

_OFFSET = 128
"""The difference between a byte from 0 to 255 and the signed one that stands for it."""
_LARGEST_SUM = 2**31 - 1


@dataclass(frozen=True)
class _Factor:
    """An operand of a product: integers, with one scale, or one for each index of an axis.

    Attributes:
        values: The integers.
        scale: The scale.
        point: The zero point, one for all; None if it is zero.
        axis: The axis of several scales; None if there is one.
    """

    values: Operand
    scale: Operand
    point: Operand | None
    axis: int | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape."""
        return self.values.type.static_shape

    @property
    def largest(self) -> int:
        """Return the largest magnitude of an integer, with and without its zero point."""
        return 128 if is_signed(self.values.type.dtype) and self.point is None else 255


def integer_products(graph: Graph) -> Graph:
    """Return a graph in which products and convolutions of bytes have sums of integers."""
    return rewrite_nodes(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if not (is_convolution(node) or node.op == "matmul") or not node.output.type.is_static:
        return None
    a, b = (_factor(x, rewriter) for x in node.operands)
    if a is None or b is None:
        return None
    a, b = _of_two_types(a, b, rewriter)
    total = (_convolution if is_convolution(node) else _product)(node, a, b, rewriter)
    if total is None:
        return None
    dtype, axis = node.output.type.dtype, -1 if b.axis is not None else -2
    wide = sum_dtype(dtype)
    scales = (rewriter.add("astype", x.scale, dtype=wide) for x in (a, b))
    scale = rewriter.add("multiply", *scales)
    axis = 1 if is_convolution(node) else axis
    return (rewriter.add("dequantize", total, scale, axis=axis, out_dtype=dtype),)


# --- operands -------------------------------------------------------------------------------------


def _factor(operand: Operand, rewriter: Rewriter) -> _Factor | None:
    """Return the integers that an operand is made of; None if it is not, or is a vector."""
    node = bytes_made_float(operand, rewriter)
    if node is None or not operand.type.is_static or operand.type.rank < 2:
        return None
    values, scale, point = node.operands[0], node.operands[1], zero_point_of(node)
    rank, axis = values.type.rank, node.attrs["axis"]
    assert isinstance(axis, int)
    elements, points = elements_of(values), elements_of(point)
    if elements is not None and points is not None:
        shape = (-1, *[1] * (rank - 1 - axis % rank)) if points.size > 1 else ()
        shifted = elements.astype(np.int32) - points.reshape(shape).astype(np.int32)
        low, high = smallest_and_largest("int8")
        if shifted.min() >= low and shifted.max() <= high:
            values, point = constant(shifted.astype(np.int8), values.name), None
    if point is not None and point.type.num_elements > 1:
        return None
    return _Factor(values, scale, point, axis % rank if scale.type.num_elements > 1 else None)


def _of_two_types(a: _Factor, b: _Factor, rewriter: Rewriter) -> tuple[_Factor, _Factor]:
    """Return unsigned bytes and signed ones, as instructions take them, if a quantization can.

    A zero point may disappear by that: a sum less.
    """
    if a.values.type.dtype != b.values.type.dtype:
        return a, b
    has_less = known_integer(a.point) == _OFFSET and not is_signed(a.values.type.dtype)
    first, second = (a, b) if has_less else (b, a)
    changed = _changed(first, rewriter)
    if changed is not None:
        return (changed, b) if first is a else (a, changed)
    changed = _changed(second, rewriter)
    if changed is not None:
        return (changed, b) if second is a else (a, changed)
    return a, b


def _changed(factor: _Factor, rewriter: Rewriter) -> _Factor | None:
    """Return a factor in bytes of the other type, if these are made by a quantization."""
    signed = is_signed(factor.values.type.dtype)
    dtype: DType = "uint8" if signed else "int8"
    point = known_integer(factor.point)
    if point is None:
        return None
    new_point = point + (_OFFSET if signed else -_OFFSET)
    name = factor.values.name
    operand = constant(np.asarray(new_point, dtype), name) if new_point else None
    values = _quantized_to(factor.values, dtype, operand, rewriter)
    return None if values is None else _Factor(values, factor.scale, operand, factor.axis)


def _quantized_to(
    values: Operand, dtype: DType, point: Constant | None, rewriter: Rewriter
) -> Operand | None:
    """Quantize to another type what movements read; None if something else makes the values."""
    elements = elements_of(values)
    if elements is not None:
        # Unsigned weights would need a zero point, and sums of what they multiply.
        return constant((elements ^ _OFFSET).view(np.int8)) if dtype == "int8" else None
    node = rewriter.producer(values)
    if node is not None and node.op in MOVES:
        moved = _quantized_to(node.operands[0], dtype, point, rewriter)
        return None if moved is None else rewriter.with_inputs(node, moved)
    if node is None or node.op != "quantize" or not is_whole(node):
        return None
    return rewriter.add("quantize", *node.operands[:2], point, axis=0, out_dtype=dtype)


# --- sums -----------------------------------------------------------------------------------------


def _product(node: Node, a: _Factor, b: _Factor, rewriter: Rewriter) -> Operand | None:
    """Return the sums of a matrix product; None if they may be too large."""
    steps, rank = a.shape[-1], len(a.shape)
    fits = a.axis in (None, rank - 2) and b.axis in (None, len(b.shape) - 1)
    if not fits or (a.axis is not None and b.axis is not None) or not _are_exact(steps, a, b):
        return None
    total: Operand = rewriter.add("matmul", a.values, b.values, out_dtype="int32")
    if a.point is not None:
        sums = _sum(b.values, (-2,), rewriter)
        if b.point is not None:
            count = constant(np.int32(steps))
            sums = rewriter.add(
                "subtract", sums, rewriter.add("multiply", _wide(b.point, rewriter), count)
            )
        total = _less(total, sums, a.point, rewriter)
    if b.point is not None:
        total = _less(total, _sum(a.values, (-1,), rewriter), b.point, rewriter)
    return total


def _convolution(node: Node, a: _Factor, b: _Factor, rewriter: Rewriter) -> Operand | None:
    """Return the sums of a convolution; None if they may be too large, or padding is unknown."""
    fits = a.axis is None and b.axis in (None, 0) and b.point is None
    if not fits or not _are_exact(math.prod(b.shape[1:]), a, b):
        return None
    image, attrs = a.values, {**node.attrs, "out_dtype": "int32"}
    padding = node.attrs["padding"]
    assert isinstance(padding, tuple)
    if a.point is not None and any(padding):
        # Padding stands for zero: it has the value of the zero point.
        value, rank = known_integer(a.point), len(padding) // 2
        if value is None:
            return None
        sides = zip(padding[:rank], padding[rank:], strict=True)
        widths = ((0, 0), (0, 0), *sides)
        image = rewriter.add("nn.pad", image, pad_width=widths, pad_value=value)
        attrs["padding"] = (0,) * len(padding)
    total: Operand = rewriter.add(node.op, image, b.values, **attrs)
    if a.point is None:
        return total
    axes = tuple(range(1, len(b.shape)))
    sums = rewriter.add(
        "reshape", _sum(b.values, axes, rewriter), shape=(-1, *[1] * (len(axes) - 1))
    )
    return _less(total, sums, a.point, rewriter)


def _are_exact(steps: int, a: _Factor, b: _Factor) -> bool:
    """Return whether no sum of products, nor what zero points add to it, exceeds 32 bits."""
    return steps * a.largest * b.largest <= _LARGEST_SUM


def _sum(values: Operand, axes: tuple[int, ...], rewriter: Rewriter) -> Operand:
    return rewriter.add("sum", _wide(values, rewriter), axis=axes, keepdims=True)


def _less(total: Operand, sums: Operand, point: Operand, rewriter: Rewriter) -> Operand:
    """Return sums less what a zero point adds to them."""
    excess = rewriter.add("multiply", sums, _wide(point, rewriter))
    return rewriter.add("subtract", total, excess)


def _wide(operand: Operand, rewriter: Rewriter) -> Operand:
    return rewriter.add("astype", operand, dtype="int32")
