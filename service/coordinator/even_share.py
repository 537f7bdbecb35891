"""How many jobs a process of coordinators claims, so that each of them runs as many.

One that has its share leaves free jobs to the others for a while: they may have no seat left, serve
other kinds of target, or stand still. Urgent jobs are not left to others.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from service.store.jobs.claims import Look

PATIENCE_SECS = 1.0
"""How long free jobs are left to others, which poll the queue twice a second. Chosen."""


class EvenShare:
    """Says how many jobs a process may claim; called in the turn to claim alone.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._left_since: float | None = None

    def most(self, look: Look, num_processes: int) -> int:
        """Return how many jobs may be claimed now.

        Args:
            num_processes: The processes of coordinators, with this one.
        """
        if not look.num_free:
            self._left_since = None
            return 0
        now = self._clock()
        if self._left_since is None:
            self._left_since = now
        if now - self._left_since >= PATIENCE_SECS:
            return look.num_free
        share = -(-look.num_open // max(1, num_processes))
        return max(share - look.num_own, look.num_urgent, 0)
