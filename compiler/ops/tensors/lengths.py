"""Lengths of the rows of padded batches."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import is_integer
from compiler.ops.error import OperatorError
from compiler.ops.tensors.operands import check_dims


def check_lengths(operator: str, lengths: te.Tensor, batch: int) -> None:
    """Check that a tensor holds a length for each row of a batch.

    Raises:
        OperatorError: If its shape or type does not fit.
    """
    check_dims(operator, lengths, (batch,))
    if not is_integer(lengths.dtype):
        reason = f"lengths have type {lengths.dtype!r}: expected integers"
        raise OperatorError(f"{operator}: {reason}")


def is_within(lengths: te.Tensor, row: te.Value, position: te.Value) -> te.Value:
    """Return whether a position is before the end of a row; a length below 1 counts as 1.

    The comparison is one of sums of loops, so that `skip_masked` can use it.
    """
    return position <= te.max(lengths[row], 1) - 1
