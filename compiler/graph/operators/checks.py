"""Checks of operands and attributes that several families of operators share."""

from __future__ import annotations

from compiler.graph.error import ModelError
from compiler.graph.extents import Shape, show_shape
from compiler.graph.nodes import TensorType


def check_rank(operator: str, operand: str, given: TensorType, rank: int) -> None:
    """Refuse an operand of another rank.

    Raises:
        ModelError: Naming the operand and both ranks.
    """
    if given.rank != rank:
        raise ModelError(
            f"{operator}: {operand} has shape {given.shape}: expected {rank} dimension(s)"
        )


def check_shape(operator: str, operand: str, given: TensorType, expected: Shape) -> None:
    """Refuse an operand of another shape.

    Raises:
        ModelError: Naming the operand and both shapes.
    """
    if given.shape != expected:
        raise ModelError(
            f"{operator}: {operand} has shape {given.shape}: expected {show_shape(expected)}"
        )


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
