"""The values of a trace in JSON, which may be hostile: each is checked.

Every function takes a value and its position in the JSON, and raises `TraceError` if the value is
not the expected one.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from typing import TypeGuard

from compiler.schedule.error import TraceError
from compiler.schedule.index.lambda_text import LambdaError, read_lambda

# Chosen bounds on values from outside: lists are of factors or loops, texts are names and maps.
MAX_ITEMS = 256
MAX_TEXT = 1_000
MAX_INT = 2**53
"""The greatest integer that every JSON reader preserves."""


def as_object(
    value: object, where: str, required: AbstractSet[str], optional: AbstractSet[str] = frozenset()
) -> dict[str, object]:
    """Return an object that has all required fields, and no unknown ones."""
    if not isinstance(value, dict):
        raise TraceError(where, f"expected an object, got {shown(value)}")
    if value.keys() == required:
        return value
    missing, extra = required - value.keys(), value.keys() - required - optional
    if missing:
        raise TraceError(where, f"lacks {', '.join(sorted(missing))}")
    if extra:
        raise TraceError(where, f"has unknown fields: {', '.join(sorted(map(shown, extra)))}")
    return value


def as_list(value: object, where: str, least: int) -> list[object]:
    """Return a list of `least` items or more."""
    if not isinstance(value, list):
        raise TraceError(where, f"expected a list, got {shown(value)}")
    if not least <= len(value) <= MAX_ITEMS:
        raise TraceError(where, f"expected {least} to {MAX_ITEMS} items, got {len(value)}")
    return value


def is_int(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer; true and false are not."""
    return isinstance(value, int) and not isinstance(value, bool)


def as_int(value: object, where: str, least: int = -MAX_INT) -> int:
    """Return an integer of at least `least`."""
    if not is_int(value) or not least <= value <= MAX_INT:
        kind = "a positive integer" if least == 1 else "an integer"
        raise TraceError(where, f"expected {kind}, got {shown(value)}")
    return value


def as_text(value: object, where: str) -> str:
    """Return a string."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise TraceError(where, f"expected a string, got {shown(value)}")
    return value


def as_pair(value: object, where: str) -> tuple[object, object]:
    """Return the items of a list of two."""
    items = as_list(value, where, 2)
    if len(items) != 2:
        raise TraceError(where, f"expected 2 items, got {len(items)}")
    return items[0], items[1]


def as_lambda(value: object, where: str) -> str:
    """Return the text of a lambda."""
    text = as_text(value, where)
    try:
        read_lambda(text, 0)
    except LambdaError as error:
        raise TraceError(where, str(error)) from None
    return text


def as_probability(value: object, where: str) -> float:
    """Return a probability; several need not add up to one."""
    if is_int(value) or isinstance(value, float):
        number = float(value) if abs(value) <= MAX_INT else math.inf
        if math.isfinite(number) and number >= 0:
            return number
    raise TraceError(where, f"expected a probability, got {shown(value)}")


def as_scalar(value: object, where: str) -> bool | int | float | str:
    """Return a bool, a number or a string."""
    if isinstance(value, bool):
        return value
    if is_int(value):
        return as_int(value, where)
    if isinstance(value, float) and math.isfinite(value):
        return value
    return as_text(value, where)


def shown(value: object) -> str:
    """Return a value as errors quote it."""
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
