"""The time in which a child was suspended: it counts for none of its deadlines."""

from __future__ import annotations

import time
from threading import Lock


class Suspension:
    """Sums the time between calls of `begin` and `end`, from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ended_secs = 0.0
        self._since: float | None = None

    @property
    def is_on(self) -> bool:
        """Return whether it has begun and not ended."""
        return self._since is not None

    def begin(self) -> None:
        """Begin; without effect if it has begun."""
        with self._lock:
            if self._since is None:
                self._since = time.monotonic()

    def end(self) -> None:
        """End; without effect if it has not begun."""
        with self._lock:
            if self._since is not None:
                self._ended_secs += time.monotonic() - self._since
                self._since = None

    def total_secs(self) -> float:
        """Return the sum until now, in seconds."""
        with self._lock:
            current_secs = 0.0 if self._since is None else time.monotonic() - self._since
            return self._ended_secs + current_secs
