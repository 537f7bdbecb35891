"""The error of an operator that can't be made as asked, and the checks that raise it."""

from __future__ import annotations

from compiler.ir.dtypes import DTYPES, DType

MAX_EXTENT = 2**31 - 1


class OperatorError(ValueError):
    """An operator was asked for with a name, a shape or a type that does not exist."""


def check_extents(operator: str, **extents: int) -> None:
    """Refuse extents below one or beyond a 32-bit index.

    Raises:
        OperatorError: Naming the extent.
    """
    check_range(operator, 1, **extents)


def check_range(operator: str, minimum: int, **numbers: int) -> None:
    """Refuse numbers below `minimum` or beyond a 32-bit index.

    Raises:
        OperatorError: Naming the number.
    """
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int):
            raise OperatorError(f"{operator}: {name} is {number!r}: expected an integer")
        if not minimum <= number <= MAX_EXTENT:
            raise OperatorError(
                f"{operator}: {name} is {number}: expected {minimum} to {MAX_EXTENT}"
            )


def check_dtype(operator: str, dtype: DType, *, needs_float: bool = False) -> None:
    """Refuse types that do not exist or that the operator can't compute in.

    Raises:
        OperatorError: Naming the type.
    """
    kinds = ("float",) if needs_float else ("float", "int", "uint")
    allowed = sorted(d for d in DTYPES if d.startswith(kinds))
    if dtype not in allowed:
        raise OperatorError(
            f"{operator}: type {dtype!r} is not supported: expected one of {', '.join(allowed)}"
        )
