"""Operators that move elements: transpose, concat, pad."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import Numbers, check_axis, check_shape
from compiler.ops.operator import operator
from compiler.ops.recognizers.rows import transposes
from compiler.ops.references import shape as references
from compiler.ops.tensors import shape as tensors


@operator(tensors.transpose, reference=references.transpose, recognize=transposes)
def transpose(*shape: int, axes: Sequence[int] | None = None, dtype: DType = "float32") -> PrimFunc:
    """`B = A` with its axes in another order: by default the reverse one.

    Args:
        shape: The shape of `A`.
        axes: For each axis of `B`, the axis of `A` that it is.
        dtype: The type of both.

    Raises:
        OperatorError: If an extent, an axis or the type is out of range.
    """
    x = operand(check_shape("transpose", shape), dtype, "A")
    return build("transpose", [x], tensors.transpose(x, axes=axes))


@operator(tensors.concat, reference=references.concat)
def concat(
    *shape: int, sizes: Sequence[int] | None = None, axis: int = 0, dtype: DType = "float32"
) -> PrimFunc:
    """Join tensors along an axis: two of one shape, unless `sizes` gives the extent of each.

    Args:
        shape: The shape of the tensors; `sizes` replaces its extent along the axis.
        sizes: The extents of the tensors along the axis.
        axis: The axis.
        dtype: The type of all tensors.

    Raises:
        OperatorError: If an extent, the axis or the type is out of range.
    """
    dims = check_shape("concat", shape)
    axis = check_axis("concat", axis, len(dims))
    lengths = [dims[axis]] * 2 if sizes is None else check_shape("concat", sizes, "size")
    parts = [
        operand((*dims[:axis], length, *dims[axis + 1 :]), dtype, f"A{number}")
        for number, length in enumerate(lengths)
    ]
    return build("concat", parts, tensors.concat(*parts, axis=axis))


@operator(tensors.pad, reference=references.pad)
def pad(
    *shape: int,
    pad_before: Numbers = 1,
    pad_after: Numbers | None = None,
    pad_value: float = 0.0,
    dtype: DType = "float32",
) -> PrimFunc:
    """Pad a tensor with a value.

    Args:
        shape: The shape of the tensor.
        pad_before: The number of elements before each axis: one number for all, or one each.
        pad_after: The number of elements after each axis; by default as many as before.
        pad_value: The value.
        dtype: The type of the tensor.

    Raises:
        OperatorError: If an extent, a number or the type is out of range.
    """
    x = operand(check_shape("pad", shape), dtype, "A")
    output = tensors.pad(x, pad_before=pad_before, pad_after=pad_after, pad_value=pad_value)
    return build("pad", [x], output)
