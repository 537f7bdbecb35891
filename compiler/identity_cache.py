"""The cache by identity, for values that never change and take long to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class IdentityCache(Generic[K, V]):
    """Keeps one value for each object, which it distinguishes by identity.

    An entry keeps its object alive, because Python reuses the identity of a dead object.

    Args:
        max_entries: At this number of entries all are dropped: recording the use of each would cost
            more than computing some again. None for a cache that lives as long as one task.
    """

    __slots__ = ("_entries", "_max_entries")

    def __init__(self, max_entries: int | None = None) -> None:
        self._entries: dict[int, tuple[K, V]] = {}
        self._max_entries = max_entries

    def get(self, key: K) -> V | None:
        """Return the value of an object, or None."""
        entry = self._entries.get(id(key))
        return None if entry is None else entry[1]

    def put(self, key: K, value: V) -> V:
        """Keep a value for an object, and return it."""
        if len(self._entries) == self._max_entries:
            self._entries.clear()
        self._entries[id(key)] = (key, value)
        return value

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()

    def find(self, key: K, compute: Callable[[K], V]) -> V:
        """Return the value of an object; compute it at the first call."""
        entry = self._entries.get(id(key))
        return self.put(key, compute(key)) if entry is None else entry[1]
