"""Values of annotations as callers give them, and their conversion to IR values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from compiler.ir.core.nodes import AnnotationDict, AnnotationValue, FloatImm, IntImm, StringImm
from compiler.schedule.trace.handle import ExprRV, TermRV
from compiler.te.value import Value

# A chosen bound: notes are read recursively; those of known passes have two levels.
MAX_DEPTH = 16

Note: TypeAlias = "str | int | float | bool | ExprRV | TermRV | Sequence[Note] | Mapping[str, Note]"
"""The value of an annotation, with handles of values in place of integers."""


class NoteError(ValueError):
    """A value that an annotation can't have."""


def checked_note(note: object, depth: int = 0) -> Note:
    """Return a value that consists of numbers, strings, handles, tuples and dicts.

    Raises:
        NoteError: If it contains something else, is nested too deeply, or has an infinite number.
    """
    if depth > MAX_DEPTH:
        raise NoteError(f"the value is nested deeper than {MAX_DEPTH} levels")
    match note:
        case float() if not math.isfinite(note):
            raise NoteError(f"the value {note} is not a number that a trace can hold")
        case ExprRV() | TermRV() | str() | int() | float():
            return note
        case IntImm(value) | FloatImm(value) | StringImm(value):
            return checked_note(value, depth)
        case Value(expr=IntImm() | FloatImm() as literal):
            return checked_note(literal, depth)
        case list() | tuple():
            return tuple(checked_note(item, depth + 1) for item in note)
        case AnnotationDict(items):
            return checked_note(dict(items), depth)
        case Mapping():
            return {_key(key): checked_note(item, depth + 1) for key, item in note.items()}
        case _:
            raise NoteError(f"{note!r} is not a number, a string, or a list or mapping of them")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise NoteError(f"{key!r} is not a key: expected a string")
    return key


def annotation_value(note: Note, value_of: Callable[[ExprRV | TermRV], int]) -> AnnotationValue:
    """Return the value of an annotation, with handles replaced by their values."""
    match note:
        case ExprRV() | TermRV():
            return value_of(note)
        case str() | int() | float():
            return note
        case Mapping():
            items = ((key, annotation_value(item, value_of)) for key, item in note.items())
            return AnnotationDict(tuple(items))
        case _:
            return tuple(annotation_value(item, value_of) for item in note)
