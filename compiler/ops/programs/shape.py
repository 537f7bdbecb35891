"""Operators that move the elements of tensors."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import (
    Numbers,
    OperatorError,
    check_axes,
    check_axis,
    check_dtype,
    check_number,
    check_shape,
    spread,
)
from compiler.ops.tensors.windows import pad as padded


def transpose(*shape: int, axes: Sequence[int] | None = None, dtype: DType = "float32") -> PrimFunc:
    """`B = A` with its axes in another order: the reverse one unless `axes` are given.

    Args:
        shape: The shape of `A`.
        axes: For each axis of `B`, the axis of `A` that it is.
        dtype: The type of both.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    dims = check_shape("transpose", shape)
    check_dtype("transpose", dtype)
    order = list(reversed(range(len(dims))))
    if axes is not None:
        if check_axes("transpose", axes, len(dims)) != tuple(range(len(dims))):
            raise OperatorError(f"transpose: axes is {axes!r}: expected all {len(dims)} axes")
        order = [check_axis("transpose", axis, len(dims)) for axis in axes]
    a = te.placeholder(dims, dtype, name="A")
    b = te.compute(
        [dims[axis] for axis in order],
        lambda *i: a[tuple(i[order.index(axis)] for axis in range(len(dims)))],
        name="B",
    )
    return build("transpose", [a, b])


def concat(
    *shape: int, sizes: Sequence[int] | None = None, axis: int = 0, dtype: DType = "float32"
) -> PrimFunc:
    """Join tensors along an axis: two of one shape, unless `sizes` tells the extent of each.

    Args:
        shape: The shape of the tensors; what it says of the axis holds unless `sizes` is given.
        sizes: The extents of the tensors along the axis.
        axis: The axis.
        dtype: The type of all tensors.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims = check_shape("concat", shape)
    check_dtype("concat", dtype)
    axis = check_axis("concat", axis, len(dims))
    lengths = [dims[axis]] * 2 if sizes is None else list(check_shape("concat", sizes, "size"))
    parts = [
        te.placeholder((*dims[:axis], n, *dims[axis + 1 :]), dtype, name=f"A{number}")
        for number, n in enumerate(lengths)
    ]

    def element(*i: te.Value) -> te.Value:
        total = parts[0][i]
        begin = 0
        for part, before in zip(parts[1:], lengths, strict=False):
            begin += before
            place = (*i[:axis], i[axis] - begin, *i[axis + 1 :])
            total = te.if_then_else(te.const(begin, "int32") <= i[axis], part[place], total)
        return total

    whole = (*dims[:axis], sum(lengths), *dims[axis + 1 :])
    return build("concat", [*parts, te.compute(whole, element, name="T_concat")])


def pad(
    *shape: int,
    pad_before: Numbers = 1,
    pad_after: Numbers | None = None,
    pad_value: float = 0.0,
    dtype: DType = "float32",
) -> PrimFunc:
    """Put a value around a tensor.

    Args:
        shape: The shape of the tensor.
        pad_before: How many elements are put before each axis: one number for all, or one each.
        pad_after: How many are put after; as many as before unless it is given.
        pad_value: The value.
        dtype: The type of the tensor.

    Raises:
        OperatorError: If an extent, a number or the type is out of range.
    """
    dims = check_shape("pad", shape)
    check_dtype("pad", dtype)
    check_number("pad", pad_value=pad_value)
    before = spread("pad", "pad_before", pad_before, len(dims), 0)
    after = before if pad_after is None else spread("pad", "pad_after", pad_after, len(dims), 0)
    if not any(before) and not any(after):
        raise OperatorError("pad: there is nothing to put before or after")
    a = te.placeholder(dims, dtype, name="A")
    value = te.cast(dtype, te.const(pad_value, "float32"))
    if not dtype.startswith(("float", "bfloat")):
        value = te.const(int(pad_value), dtype)
    return build("pad", [a, padded(a, dims, before, after, value=value, name="PadInput")])
