"""Checks of the tensors that are passed to an operator."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import static_shape
from compiler.ops.error import OperatorError


def dims_of(operator: str, tensor: te.Tensor, ndim: int | None = None) -> tuple[int, ...]:
    """Return the extents of a tensor.

    Raises:
        OperatorError: If one is symbolic, or there are not `ndim` of them.
    """
    try:
        dims = static_shape(tensor.buffer)
    except ValueError:
        raise OperatorError(
            f"{operator}: {tensor.name} has a symbolic extent: expected numbers"
        ) from None
    if ndim is not None and len(dims) != ndim:
        raise OperatorError(
            f"{operator}: {tensor.name} has {len(dims)} dimension(s): expected {ndim}"
        )
    return dims


def check_dims(operator: str, tensor: te.Tensor, expected: tuple[int, ...]) -> None:
    """Refuse a tensor of another shape.

    Raises:
        OperatorError: Naming both shapes.
    """
    dims = dims_of(operator, tensor)
    if dims != expected:
        raise OperatorError(f"{operator}: {tensor.name} has shape {dims}: expected {expected}")


BYTES: tuple[DType, ...] = ("int8", "uint8")
"""The types of quantized values."""


def check_factors(operator: str, left: te.Tensor, right: te.Tensor) -> None:
    """Refuse operands of a product that have several types, unless both are bytes.

    Raises:
        OperatorError: Naming both.
    """
    if not {left.dtype, right.dtype} <= set(BYTES):
        check_same_dtype(operator, left, right)


def check_same_dtype(operator: str, first: te.Tensor, *others: te.Tensor) -> None:
    """Refuse tensors of several types.

    Raises:
        OperatorError: Naming two that differ.
    """
    for other in others:
        if other.dtype != first.dtype:
            raise OperatorError(
                f"{operator}: {first.name} has type {first.dtype}, {other.name} has type "
                f"{other.dtype}: expected one type"
            )
