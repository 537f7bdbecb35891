"""The rate limit of each caller: a token bucket that fills steadily."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

DEFAULT_PER_SEC = 200.0
_BURST_SECS = 10.0
_MAX_CALLERS = 10_000


class RateLimit:
    """Allows each caller `per_sec` requests a second, and those of ten seconds at once.

    Safe to use from several threads. Each process counts separately.

    Args:
        per_sec: 0 for no limit.
    """

    def __init__(
        self,
        per_sec: float = DEFAULT_PER_SEC,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_sec = per_sec
        self._clock = clock
        self._lock = Lock()
        # When each caller's bucket is full again; a full bucket has no entry.
        self._full_at: dict[str, float] = {}

    def take(self, caller: str, cost: int) -> float:
        """Take `cost` from a caller's bucket if it holds enough.

        Returns:
            0, or the seconds until the bucket holds enough; then nothing was taken.
        """
        if self.per_sec <= 0:
            return 0.0
        now = self._clock()
        with self._lock:
            full_at = max(now, self._full_at.get(caller, now)) + cost / self.per_sec
            wait_secs = full_at - now - max(_BURST_SECS, cost / self.per_sec)
            if wait_secs > 0:
                return wait_secs
            if len(self._full_at) >= _MAX_CALLERS:
                self._full_at = {
                    name: full_secs for name, full_secs in self._full_at.items() if full_secs > now
                }
            self._full_at[caller] = full_at
        return 0.0
