"""How a call of `lw.tune` divides its time between the search and what follows it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from compiler.ir.core.nodes import static_shape
from tuner.task import Task

FINISH_SHARE = 0.3
"""Share of the time for the final comparisons. Three finalists of 0.1 ms take 0.2 s for six to ten
rounds on a Zen 3. With a fifth, a call of a second chose by single trials, and kept down to 0.90 of
the speed of its best first proposal.
"""
MAX_FINISH_SECS = 20.0
"""The time for the final comparison of a workload, however long the search was; see
`tuner.finish.finish`.
"""
BASELINE_SECS = 5.0
"""Libraries are timed if so much is left: their processes take seconds to start. Chosen."""
DEFAULT_SHARE = 0.05
"""The default schedule is measured if its estimated time is at most this share. Chosen, so that
the time goes to candidates.
"""
MIN_SHARED_SECS = 10.0
"""Builders on other cores start if the call may take so long: their start takes half a second, in
which no kernel is timed. Chosen.
"""
_SECS_AN_OPERATION = 1e-9
"""The time of a default schedule, which is mostly scalar: a product of 512^3 takes 0.24 s on a
Zen 3, 0.9 ns an operation.
"""
_DEFAULT_RUNS = 2
"""Runs of a slow default schedule in its trial: one is checked, one is timed."""


class TimeLimit:
    """The limit on a call.

    Args:
        max_secs: The time of the call; None for no limit.
        num_tasks: The number of workloads that share it.
        begun: When the call began.
        clock: Returns the current time in seconds.
    """

    def __init__(
        self,
        max_secs: float | None,
        num_tasks: int,
        begun: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_secs = max_secs
        self._num_tasks = num_tasks
        self._begun = begun
        self._clock = clock

    def search_secs(self) -> float | None:
        """Return the time from now on after which the searches end; None for no limit."""
        if self._max_secs is None:
            return None
        reserved = min(FINISH_SHARE * self._max_secs, MAX_FINISH_SECS * self._num_tasks)
        return max(self._left() - reserved, 1e-9)

    def finish_secs(self, num_unfinished: int) -> float | None:
        """Return the time for the final comparison of a workload; None for no limit.

        Args:
            num_unfinished: The number of workloads that share the remaining time.
        """
        return None if self._max_secs is None else max(self._left(), 0.0) / num_unfinished

    def affords_default(self, task: Task) -> bool:
        """Return whether the default schedule of a task is worth its time."""
        if self._max_secs is None:
            return True
        num_elements = sum(math.prod(static_shape(buffer)) for buffer in task.func.buffers)
        estimate = _DEFAULT_RUNS * _SECS_AN_OPERATION * (task.flops + num_elements)
        return estimate <= DEFAULT_SHARE * self._max_secs / self._num_tasks

    def affords_builders(self) -> bool:
        """Return whether there is time to start builders on other cores."""
        return self._max_secs is None or self._max_secs >= MIN_SHARED_SECS

    def affords_baseline(self) -> bool:
        """Return whether there is time to measure libraries beside the best schedule."""
        return self._max_secs is None or self._left() >= BASELINE_SECS

    def _left(self) -> float:
        assert self._max_secs is not None, "without a limit, nothing is left of it"
        return self._max_secs - (self._clock() - self._begun)
