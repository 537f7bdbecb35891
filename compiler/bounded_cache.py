"""The one bounded cache: it drops what was used least recently."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keeps the values that were used last; safe to use from several threads.

    Args:
        max_size: The most that all values count together. The newest value stays even if it alone
            counts more.
        size_of: How much a value counts; by default 1, so that `max_size` is a number of values.
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
        """Keep a value, in place of an earlier one of the key."""
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
