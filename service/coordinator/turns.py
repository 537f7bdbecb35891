"""Turns of threads: one at a time, those of the highest priority first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition

_LOOK_SECS = 0.5
"""Interval at which a waiting thread checks whether it gives up. Chosen."""


class Turns:
    """Gives turns to threads: by priority, then in the order of their arrival."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: list[tuple[int, int]] = []
        self._arrivals = count()
        self._is_taken = False

    @contextmanager
    def turn(self, priority: int, gives_up: Callable[[], bool]) -> Iterator[bool]:
        """Run the body in a turn; yield whether it has one: not if `gives_up` became true."""
        if not self._take(priority, gives_up):
            yield False
            return
        try:
            yield True
        finally:
            with self._changed:
                self._is_taken = False
                self._changed.notify_all()

    def _take(self, priority: int, gives_up: Callable[[], bool]) -> bool:
        with self._changed:
            position = -priority, next(self._arrivals)
            heapq.heappush(self._waiting, position)
            while self._is_taken or self._waiting[0] != position:
                if gives_up():
                    self._waiting.remove(position)
                    heapq.heapify(self._waiting)
                    self._changed.notify_all()
                    return False
                self._changed.wait(_LOOK_SECS)
            heapq.heappop(self._waiting)
            self._is_taken = True
            return True
