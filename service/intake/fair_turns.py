"""Turns at a scarce resource, given to callers in rotation."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from service.common.errors import ServiceBusyError


class FairTurns:
    """Lets a few at a time do something; the others wait. Safe to use from several threads.

    Callers take turns, however many requests each has, and with two or more places no caller has
    all of them: one who comes with a small request need not wait for another's large ones.

    Args:
        at_once: How many may have their turn at the same time.
        waiting: How many may wait; each of them holds a thread.
        waiting_of_one: How many of one caller may wait.
    """

    def __init__(self, at_once: int, *, waiting: int, waiting_of_one: int) -> None:
        self._free = at_once
        self._most_of_one = max(1, at_once - 1)
        self._most_waiting = waiting
        self._most_waiting_of_one = waiting_of_one
        self._changed = Condition()
        # In the order in which the callers have their next turns.
        self._queues: dict[str, deque[object]] = {}
        self._running: Counter[str] = Counter()

    @contextmanager
    def turn(self, caller: str) -> Iterator[None]:
        """Wait for a turn, and have it while the body runs.

        Raises:
            ServiceBusyError: If too many wait already, or too many of this caller.
        """
        with self._changed:
            self._wait(caller)
        try:
            yield
        finally:
            with self._changed:
                self._free += 1
                self._running[caller] -= 1
                if self._running[caller] == 0:
                    del self._running[caller]
                self._changed.notify_all()

    def _wait(self, caller: str) -> None:
        queue = self._queues.get(caller, deque())
        num_waiting = sum(map(len, self._queues.values()))
        if num_waiting >= self._most_waiting or len(queue) >= self._most_waiting_of_one:
            raise ServiceBusyError("too many programs in the parsing queue; try again in a moment")
        ticket = object()
        self._queues[caller] = queue
        queue.append(ticket)
        try:
            self._changed.wait_for(lambda: self._next() is ticket)
        finally:
            queue.remove(ticket)
            # To the end of the rotation, or out of it.
            del self._queues[caller]
            if queue:
                self._queues[caller] = queue
        self._free -= 1
        self._running[caller] += 1
        self._changed.notify_all()

    def _next(self) -> object | None:
        """Return the ticket whose turn it is."""
        if self._free == 0:
            return None
        for caller, queue in self._queues.items():
            if queue and self._running[caller] < self._most_of_one:
                return queue[0]
        return None
