"""The bounded cache of the project: it drops the least recently used values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keeps the most recently used values; safe to use from several threads.

    Args:
        max_size: The limit on the total size of all values. The newest value stays even if it alone
            exceeds it.
        size_of: Returns the size of a value; by default 1, so that `max_size` is a number of
            values.
    """

    def __init__(self, max_size: int, size_of: Callable[[V], int] = lambda _: 1) -> None:
        self._max_size = max_size
        self._size_of = size_of
        self._size = 0
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return the value of a key, or None; the key counts as used."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Store a value, replacing an earlier one of the key."""
        with self._lock:
            if key in self._values:
                self._size -= self._size_of(self._values.pop(key))
            self._values[key] = value
            self._size += self._size_of(value)
            while self._size > self._max_size and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._size -= self._size_of(dropped)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._values.clear()
            self._size = 0
