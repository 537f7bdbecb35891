"""How many requests a caller may send: a bucket of tokens each, that fills steadily."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

DEFAULT_PER_SEC = 200.0
_BURST_SECS = 10.0
_MAX_CALLERS = 10_000


class RateLimit:
    """Lets each caller take `per_sec` a second, and ten seconds' worth at once.

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
        # When each caller's bucket is full again; one that is full needs no entry.
        self._full_at: dict[str, float] = {}

    def take(self, caller: str, cost: int) -> float:
        """Take from a caller's bucket if there is enough in it.

        Returns:
            0, or in how many seconds there will be enough; nothing was taken then.
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
