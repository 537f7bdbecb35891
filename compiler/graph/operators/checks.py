"""Checks of operands and attributes that several families of operators share."""

from __future__ import annotations

from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.ir.core.dtypes import is_float


def check_rank(operator: str, operand: str, given: TensorType, rank: int) -> None:
    """Refuse an operand of another rank.

    Raises:
        ModelError: Naming the operand and both ranks.
    """
    if given.rank != rank:
        raise ModelError(
            f"{operator}: {operand} has shape {given.shape}: expected {rank} dimension(s)"
        )


def check_shape(
    operator: str, operand: str, given: TensorType, expected: tuple[object, ...]
) -> None:
    """Refuse an operand of another shape.

    Raises:
        ModelError: Naming the operand and both shapes.
    """
    if given.shape != expected:
        raise ModelError(f"{operator}: {operand} has shape {given.shape}: expected {expected}")


def check_same_type(operator: str, *given: TensorType) -> None:
    """Refuse operands of several data types.

    Raises:
        ModelError: Naming the types.
    """
    dtypes = [each.dtype for each in given]
    if len(set(dtypes)) > 1:
        raise ModelError(f"{operator}: operands of types {', '.join(dtypes)}: expected one type")


def check_float(operator: str, given: TensorType) -> None:
    """Refuse an operand that has no floats.

    Raises:
        ModelError: Naming the type.
    """
    if not is_float(given.dtype):
        raise ModelError(f"{operator} of {given.dtype}: expected floats")


def check_axis(operator: str, axis: int, rank: int) -> int:
    """Return an axis counted from the first; negative ones are counted from the last.

    Raises:
        ModelError: If the axis does not exist.
    """
    if not -rank <= axis < rank:
        raise ModelError(f"{operator}: axis is {axis}: expected {-rank} to {rank - 1}")
    return axis % rank


def check_numbers(operator: str, name: str, numbers: object, count: int, minimum: int) -> None:
    """Refuse an attribute that is not a tuple of `count` integers from `minimum` on.

    Raises:
        ModelError: Naming the attribute and its value.
    """
    items = numbers if isinstance(numbers, tuple) else ()
    if len(items) != count or not all(isinstance(n, int) and n >= minimum for n in items):
        raise ModelError(
            f"{operator}: {name} is {numbers!r}: expected {count} integers of at least {minimum}"
        )


def check_static(operator: str, operand: str, given: TensorType) -> tuple[int, ...]:
    """Return a shape of integers.

    Raises:
        ModelError: If an extent is symbolic.
    """
    if not given.is_static:
        raise ModelError(
            f"{operator}: {operand} has the symbolic shape {given.shape}", advice="fix the shape"
        )
    return given.static_shape
