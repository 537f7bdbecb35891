"""The number of candidates in a batch for a worker.

A batch lasts one to two seconds: long enough that sending it costs nothing, short enough that
progress is visible, a lost worker loses little, and a cancelled job ends soon.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from compiler.bounded_cache import BoundedCache
from compiler.runtime.measurement import Measurement

_BATCH_SECS = 1.5
"""Duration of a batch: long enough that sending it costs nothing beside it, short enough for
progress, cancelling and lost workers. Chosen.
"""
_MAX_CANDIDATES = 64
"""Candidates of a batch: it bounds the size of a message. Chosen."""
_MAX_WORKLOADS = 64
"""Workloads whose cost is remembered. Chosen."""
_WEIGHT = 0.5
"""Weight of the latest batch against those before it. Chosen."""


class BatchSizer:
    """Estimates the time of a workload's candidates; safe to use from several threads."""

    def __init__(self) -> None:
        self._secs: BoundedCache[str, float] = BoundedCache(_MAX_WORKLOADS)
        self._lock = Lock()  # BatchSizer reads its estimate, then changes it

    def size(self, workload: str, num_left: int, num_slots: int) -> int:
        """Return the number of remaining candidates in the next batch, at least one."""
        # A candidate of an unknown workload may take a minute: send the first one alone.
        secs = self.secs(workload) or _BATCH_SECS
        share = -(-num_left // num_slots)
        return max(1, min(int(_BATCH_SECS / secs), share, _MAX_CANDIDATES))

    def secs(self, workload: str) -> float:
        """Return the estimate for a candidate; 0 without one."""
        return self._secs.get(workload) or 0.0

    def learn(self, workload: str, measurements: Sequence[Measurement]) -> None:
        """Update the estimate with the time of a batch."""
        mean = sum(map(_cost_secs, measurements)) / len(measurements)
        with self._lock:
            earlier = self._secs.get(workload) or mean
            self._secs.put(workload, max(1e-4, (1 - _WEIGHT) * earlier + _WEIGHT * mean))


def _cost_secs(measurement: Measurement) -> float:
    return measurement.build_secs + measurement.check_secs + measurement.time_secs
