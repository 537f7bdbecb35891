"""How a search over ranges divides its time limit, which is that of each of its jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from service.coordinator.heartbeat import Heartbeat
from service.store.jobs.jobs import JobRow

SEARCH_SHARE = 0.7
"""Share of the time for the searches of sizes, as in `lw.tune`."""
FINISH_SHARE = 0.1
"""Share of the time for the final comparisons of all sizes together; the rest is for choosing
kernels. Chosen.
"""


@dataclass(frozen=True)
class RangeTime:
    """The time of a job whose search is over a range; without a limit, or alone, it has no end.

    Attributes:
        job: The job of a size, or any other job.
        heartbeat: Reads its limit, which users change.
        num_sizes: The number of sizes that are tuned with it; 0 for any other job.
        active_secs: Returns how long it has run.
    """

    job: JobRow
    heartbeat: Heartbeat
    num_sizes: int
    active_secs: Callable[[], float]

    @property
    def _max_secs(self) -> float | None:
        return self.heartbeat.controls[self.job.id].budget.max_secs

    @property
    def is_searched(self) -> bool:
        """Return whether the time for the search is over."""
        limit = self._max_secs
        share = SEARCH_SHARE if self.num_sizes else 1.0
        return limit is not None and self.active_secs() >= share * limit

    @property
    def finish_secs(self) -> float | None:
        """Return the time for the final comparison of the size; None for no limit."""
        if self._max_secs is None or not self.num_sizes:
            return None
        return FINISH_SHARE * self._max_secs / self.num_sizes

    @property
    def choice_secs(self) -> float | None:
        """Return the time that is left for choosing kernels; None for no limit."""
        return None if self._max_secs is None else max(self._max_secs - self.active_secs(), 0.0)
