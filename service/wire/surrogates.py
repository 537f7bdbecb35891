"""Texts that cannot be encoded: those with half of a surrogate pair, which JSON can escape."""

from __future__ import annotations

from collections.abc import Iterable

Location = tuple[int | str, ...]


def lone_surrogates(body: object) -> list[tuple[Location, str]]:
    """Return the texts in a body that cannot be encoded, and their locations, in order.

    The location of a name that cannot be encoded is that of its object: errors repeat locations.
    """
    flaws: list[tuple[Location, str]] = []
    pending: list[tuple[Location, object]] = [((), body)]  # a body may be nested deeply
    while pending:
        location, value = pending.pop()
        inside: Iterable[tuple[int | str, object]] = ()
        match value:
            case str():
                if not _can_be_encoded(value):
                    flaws.append((location, value))
            case dict():
                names = [name for name in value if isinstance(name, str)]
                flaws += [(location, name) for name in names if not _can_be_encoded(name)]
                inside = [(name, value[name]) for name in names if _can_be_encoded(name)]
            case list() | tuple():
                inside = list(enumerate(value))
            case _:
                pass
        pending += [((*location, step), part) for step, part in reversed(list(inside))]
    return flaws


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
