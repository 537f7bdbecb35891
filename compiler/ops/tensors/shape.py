"""Operators that move elements: transpose, concat, pad."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.ir.core.dtypes import is_float
from compiler.ops.error import (
    Numbers,
    OperatorError,
    check_axes,
    check_axis,
    check_dtype,
    check_number,
    spread,
)
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of
from compiler.ops.tensors.windows import pad as padded


def transpose(x: te.Tensor, *, axes: Sequence[int] | None = None) -> te.Tensor:
    """Return `x` with its axes in another order: by default the reverse one.

    Args:
        x: The tensor.
        axes: For each axis of the result, the axis of `x` that it is.

    Raises:
        OperatorError: If an axis or the type is out of range.
    """
    check_dtype("transpose", x.dtype)
    dims = dims_of("transpose", x)
    order = list(reversed(range(len(dims))))
    if axes is not None:
        if check_axes("transpose", axes, len(dims)) != tuple(range(len(dims))):
            raise OperatorError(f"transpose: axes is {axes!r}: expected all {len(dims)} axes")
        order = [check_axis("transpose", axis, len(dims)) for axis in axes]
    return te.compute(
        [dims[axis] for axis in order],
        lambda *i: x[tuple(i[order.index(axis)] for axis in range(len(dims)))],
        name="B",
    )


def concat(*parts: te.Tensor, axis: int = 0) -> te.Tensor:
    """Return tensors joined along an axis.

    Raises:
        OperatorError: If a shape, a type or the axis does not fit.
    """
    if not parts:
        raise OperatorError("concat: expected at least one tensor")
    first = parts[0]
    check_dtype("concat", first.dtype)
    check_same_dtype("concat", *parts)
    dims = dims_of("concat", first)
    axis = check_axis("concat", axis, len(dims))
    lengths = [dims_of("concat", part, len(dims))[axis] for part in parts]
    for part, length in zip(parts, lengths, strict=True):
        check_dims("concat", part, (*dims[:axis], length, *dims[axis + 1 :]))

    def element(*i: te.Value) -> te.Value:
        value = first[i]
        begin = 0
        for part, before in zip(parts[1:], lengths, strict=False):
            begin += before
            index = (*i[:axis], i[axis] - begin, *i[axis + 1 :])
            value = te.if_then_else(te.const(begin, "int32") <= i[axis], part[index], value)
        return value

    result_dims = (*dims[:axis], sum(lengths), *dims[axis + 1 :])
    return te.compute(result_dims, element, name="T_concat")


def pad(
    x: te.Tensor,
    *,
    pad_before: Numbers = 1,
    pad_after: Numbers | None = None,
    pad_value: float = 0.0,
) -> te.Tensor:
    """Return a tensor padded with a value.

    Args:
        x: The tensor.
        pad_before: The number of elements before each axis: one number for all, or one each.
        pad_after: The number of elements after each axis; by default as many as before.
        pad_value: The value.

    Raises:
        OperatorError: If a number or the type is out of range.
    """
    check_dtype("pad", x.dtype)
    check_number("pad", pad_value=pad_value)
    dims = dims_of("pad", x)
    before = spread("pad", "pad_before", pad_before, len(dims), 0)
    after = before if pad_after is None else spread("pad", "pad_after", pad_after, len(dims), 0)
    if not any(before) and not any(after):
        raise OperatorError("pad: expected at least one element before or after the tensor")
    value = te.cast(x.dtype, te.const(pad_value, "float32"))
    if not is_float(x.dtype):
        value = te.const(int(pad_value), x.dtype)
    return padded(x, dims, before, after, value=value, name="PadInput")
