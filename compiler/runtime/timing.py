"""The samples of a timing, and their statistics."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """The samples of one timing, in seconds a run."""

    secs: tuple[float, ...]

    @property
    def median_secs(self) -> float:
        """The median sample."""
        return statistics.median(self.secs)

    @property
    def min_secs(self) -> float:
        """The shortest sample."""
        return min(self.secs)

    # As TVM's results are spelled; all in seconds.

    @property
    def results(self) -> tuple[float, ...]:
        """The samples."""
        return self.secs

    @property
    def mean(self) -> float:
        """The mean of the samples; unlike `median_secs`, one disturbed sample distorts it."""
        return statistics.fmean(self.secs)

    @property
    def median(self) -> float:
        """The median sample."""
        return self.median_secs

    @property
    def min(self) -> float:
        """The shortest sample."""
        return self.min_secs

    @property
    def max(self) -> float:
        """The longest sample."""
        return max(self.secs)

    @property
    def std(self) -> float:
        """The standard deviation of the samples."""
        return statistics.pstdev(self.secs)
