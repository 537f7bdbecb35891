"""The time for choosing kernels after the searches of sizes: what of it a step may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from tuner.trial import MeasuredTrial

BEST_OF_EACH = 4
"""Schedules of a tuned size that are carried over, the fastest: the fastest of one size may be slow
at others. Chosen.
"""
TUNED_SHARE = 0.4
"""Share of a limited time for the kernels at the tuned sizes; the rest is for further sizes and for
what follows. Chosen.
"""
COMPARED_SHARE = 0.5
"""Share of the time after the tuned sizes in which kernels are compared in turns. Chosen."""


def _never() -> bool:
    return False


class ChoiceBudget:
    """The limit on the time for choosing kernels.

    Args:
        max_secs: The time from now on; None for no limit.
        should_stop: Once it returns true, sizes that were not tuned are left out.
        clock: Returns the current time in seconds.
    """

    def __init__(
        self,
        max_secs: float | None = None,
        should_stop: Callable[[], bool] = _never,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.should_stop = should_stop
        self.now = clock
        self._end = None if max_secs is None else clock() + max_secs
        self._reserve_secs = 0.0

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit."""
        return self._end is not None

    def affords(self, secs: float) -> bool:
        """Return whether a step of so many seconds ends in time, before what is reserved."""
        return self._end is None or self.now() + secs + self._reserve_secs <= self._end

    def reserve(self, secs: float, share: float = 0.0) -> None:
        """Reserve time for later steps: seconds, and a share of the time after them."""
        left = 0.0 if self._end is None else max(self._end - self.now() - secs, 0.0)
        self._reserve_secs = secs + share * left

    def best_of_each(self, num_sizes: int, secs_a_timing: float) -> int:
        """Return how many schedules of each size there is time for; one at least.

        Args:
            num_sizes: The tuned sizes: each kernel is timed at each of them.
            secs_a_timing: The time of one of these timings.
        """
        if self._end is None:
            return BEST_OF_EACH
        left = TUNED_SHARE * (self._end - self.now())
        timings = left / max(secs_a_timing, 1e-9)
        most = math.floor((timings / num_sizes - 1) / num_sizes)
        return min(max(most, 1), BEST_OF_EACH)


def secs_a_timing(trials: Sequence[Sequence[MeasuredTrial]]) -> float:
    """Return how long it takes to build, check and time a candidate, in the mean of trials."""
    durations = [
        m.build_secs + m.check_secs + m.time_secs
        for of_size in trials
        for m in (trial.measurement for trial in of_size)
        if m.ok
    ]
    return sum(durations) / max(len(durations), 1)
