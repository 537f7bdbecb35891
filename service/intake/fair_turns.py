"""Fair turns at a scarce resource: callers take turns in rotation."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from service.common.errors import ServiceBusyError


class FairTurns:
    """Gives a limited number of turns at a time. Safe to use from several threads.

    Callers take turns, however many requests each has. With two or more turns at a time, no caller
    has all of them, so a small request does not wait for the large ones of another caller.

    Args:
        at_once: How many turns may be taken concurrently.
        waiting: How many requests may wait; each holds a thread.
        waiting_of_one: How many requests of one caller may wait.
    """

    def __init__(self, at_once: int, *, waiting: int, waiting_of_one: int) -> None:
        self._free = at_once
        self._most_of_one = max(1, at_once - 1)
        self._most_waiting = waiting
        self._most_waiting_of_one = waiting_of_one
        self._changed = Condition()
        # In the order of the callers' next turns.
        self._queues: dict[str, deque[object]] = {}
        self._running: Counter[str] = Counter()

    @contextmanager
    def turn(self, caller: str) -> Iterator[None]:
        """Wait for a turn, and keep it while the body runs.

        Raises:
            ServiceBusyError: If too many requests wait, in total or of this caller.
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
            # Move the caller to the end of the rotation, or remove it.
            del self._queues[caller]
            if queue:
                self._queues[caller] = queue
        self._free -= 1
        self._running[caller] += 1
        self._changed.notify_all()

    def _next(self) -> object | None:
        """Return the next ticket, or None."""
        if self._free == 0:
            return None
        for caller, queue in self._queues.items():
            if queue and self._running[caller] < self._most_of_one:
                return queue[0]
        return None
