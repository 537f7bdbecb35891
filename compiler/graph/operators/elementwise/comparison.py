"""Comparisons, logic, and operations on the bits of integers."""

from __future__ import annotations

import numpy as np

from compiler import te
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.graph.operators.broadcasting import broadcast_shapes, element
from compiler.graph.operators.elementwise.maps import declare_map
from compiler.graph.operators.types import check_accepts, check_same_dtype
from compiler.ir.core.nodes import static_shape


def _shifted_left(a: Array, b: Array) -> Array:
    width = 8 * a.dtype.itemsize
    return np.asarray(np.where(_is_within(b, width), np.left_shift(a, b % width), 0))


def _shifted_right(a: Array, b: Array) -> Array:
    width = 8 * a.dtype.itemsize
    gone = np.where(a < 0, -1, 0).astype(a.dtype)
    return np.asarray(np.where(_is_within(b, width), np.right_shift(a, b % width), gone))


def _is_within(amount: Array, width: int) -> Array:
    return np.asarray((amount >= 0) & (amount < width))


declare_map("equal", lambda a, b: a == b, np.equal, "any", "bool", operands=2)
declare_map("not_equal", lambda a, b: a != b, np.not_equal, "any", "bool", operands=2)
declare_map("less", lambda a, b: a < b, np.less, "any", "bool", operands=2)
declare_map("less_equal", lambda a, b: a <= b, np.less_equal, "any", "bool", operands=2)
declare_map("greater", lambda a, b: a > b, np.greater, "any", "bool", operands=2)
declare_map("greater_equal", lambda a, b: a >= b, np.greater_equal, "any", "bool", operands=2)

declare_map("logical_and", te.all, np.logical_and, "bool", operands=2)
declare_map("logical_or", te.any, np.logical_or, "bool", operands=2)
declare_map("logical_xor", lambda a, b: a != b, np.logical_xor, "bool", operands=2)
declare_map("logical_not", te.logical_not, np.logical_not, "bool")

declare_map("bitwise_and", lambda a, b: a & b, np.bitwise_and, "integer", operands=2)
declare_map("bitwise_or", lambda a, b: a | b, np.bitwise_or, "integer", operands=2)
declare_map("bitwise_xor", lambda a, b: a ^ b, np.bitwise_xor, "integer", operands=2)
declare_map("bitwise_not", lambda a: ~a, np.invert, "integer")
declare_map("left_shift", lambda a, b: a << b, _shifted_left, "integer", operands=2)
declare_map("right_shift", lambda a, b: a >> b, _shifted_right, "integer", operands=2)


def _where_tensors(condition: te.Tensor, x: te.Tensor, y: te.Tensor) -> te.Tensor:
    shape = broadcast_shapes(*(static_shape(t.buffer) for t in (condition, x, y)))
    return te.compute(
        shape,
        lambda *i: te.select(element(condition, i), element(x, i), element(y, i)),
        name="where",
    )


def _where_reference(condition: Array, x: Array, y: Array) -> Array:
    return np.asarray(np.where(condition, x, y))


@graph_operator("where", "map", tensors=_where_tensors, reference=_where_reference)
def where(condition: TensorType, x: TensorType, y: TensorType) -> TensorType:
    """Infer a choice of elements: of `x` where the condition holds, else of `y`."""
    check_accepts("where", "bool", condition)
    check_same_dtype("where", x, y)
    return TensorType(broadcast_shapes(condition.shape, x.shape, y.shape), x.dtype)
