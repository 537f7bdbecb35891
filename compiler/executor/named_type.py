"""The type of a value that a user passed, in the words of a message."""

from __future__ import annotations


def named_type(value: object) -> str:
    """Return the type with its article: `an int`, `a list`; `None` itself has no article."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
