"""The error of an operator whose arguments are wrong, and the checks that raise it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from compiler.ir.core.dtypes import DTYPES, DType, is_float, is_integer
from compiler.user_errors import UsageError

# The largest 32-bit index.
MAX_EXTENT = 2**31 - 1
# A chosen bound: no model operator has more dimensions, and each costs a loop.
MAX_RANK = 8

Numbers: TypeAlias = int | Sequence[int]
"""One number for all dimensions, or one each."""


class OperatorError(UsageError, ValueError):
    """The name, a shape, a type or an option of an operator is wrong."""


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


def check_shape(operator: str, shape: Numbers, name: str = "d") -> tuple[int, ...]:
    """Refuse a shape with an extent out of range, or with too many dimensions; return it.

    Raises:
        OperatorError: Naming the extent.
    """
    if isinstance(shape, int):
        shape = (shape,)
    if not isinstance(shape, tuple | list):
        raise OperatorError(f"{operator}: {name} is {shape!r}: expected a shape")
    if not 1 <= len(shape) <= MAX_RANK:
        raise OperatorError(
            f"{operator}: a shape of {len(shape)} dimension(s): expected 1 to {MAX_RANK}"
        )
    check_extents(operator, **{f"{name}{axis}": extent for axis, extent in enumerate(shape)})
    return tuple(shape)


def check_dtype(
    operator: str, dtype: DType, *, needs_float: bool = False, needs_integer: bool = False
) -> None:
    """Refuse types that do not exist or that the operator does not support.

    Raises:
        OperatorError: Naming the type.
    """
    allowed = [
        d
        for d in sorted(DTYPES)
        if (is_float(d) and not needs_integer) or (is_integer(d) and not needs_float)  # type: ignore[arg-type]
    ]
    if dtype not in allowed:
        raise OperatorError(
            f"{operator}: type {dtype!r} is not supported: expected one of {', '.join(allowed)}"
        )


def check_choice(operator: str, name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a word that is not among the choices.

    Raises:
        OperatorError: Naming the choices.
    """
    if value not in choices:
        raise OperatorError(
            f"{operator}: {name} is {value!r}: expected one of {', '.join(choices)}"
        )


def check_flags(operator: str, **flags: bool) -> None:
    """Refuse flags that are neither true nor false.

    Raises:
        OperatorError: Naming the argument.
    """
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise OperatorError(f"{operator}: {name} is {flag!r}: expected true or false")


def check_number(operator: str, **numbers: object) -> None:
    """Refuse numbers that are not finite.

    Raises:
        OperatorError: Naming the argument.
    """
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or abs(number) > 3e38:
            raise OperatorError(f"{operator}: {name} is {number!r}: expected a number")


def spread(operator: str, name: str, value: Numbers, count: int, minimum: int) -> tuple[int, ...]:
    """Return one number for each of `count` dimensions.

    Raises:
        OperatorError: If there are neither one nor `count` numbers, or one is too small.
    """
    numbers = tuple(value) if isinstance(value, Sequence) else (value,) * count
    if len(numbers) != count or isinstance(value, str):
        raise OperatorError(f"{operator}: {name} is {value!r}: expected 1 or {count} numbers")
    for number in numbers:
        check_range(operator, minimum, **{name: number})
    return numbers


def check_axis(operator: str, axis: int, ndim: int) -> int:
    """Return an axis counted from the first; negative ones are counted from the last.

    Raises:
        OperatorError: If the axis does not exist.
    """
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise OperatorError(f"{operator}: axis is {axis!r}: expected an integer")
    if not -ndim <= axis < ndim:
        raise OperatorError(f"{operator}: axis is {axis}: expected {-ndim} to {ndim - 1}")
    return axis % ndim


def check_axes(operator: str, axis: Numbers | None, ndim: int) -> tuple[int, ...]:
    """Return axes in ascending order, counted from the first; all of them for None.

    Raises:
        OperatorError: If the axis does not exist, or one is given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given_axes = axis if isinstance(axis, Sequence) and not isinstance(axis, str) else (axis,)
    axes = sorted(check_axis(operator, a, ndim) for a in given_axes)
    if len(set(axes)) < len(axes) or not axes:
        raise OperatorError(f"{operator}: axis is {axis!r}: expected different axes")
    return tuple(axes)
