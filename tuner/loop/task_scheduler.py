"""Which of several tasks to spend the next round on: the one that is expected to gain most.

The aim is the shortest weighted time of all tasks together, the sum over tasks of w_i g_i, where
g_i is the best time of task i in seconds. What a trial on task i is expected to take off it is

    gain_i = w_i (a (g_i(t_i - d) - g_i(t_i)) / d
                  + (1 - a) max(g_i(t_i) / t_i, g_i(t_i) - b C_i / V_i))

after t_i trials on it. The first term is what its last d trials brought. The second is what may be
hoped for: that the time falls on as 1 / t, or that the task comes as far as those like it did, with
C_i the operations of the task, and V_i the most operations a second that a task of its operator
reached. The latter hope halves with every d trials that bring nothing, so that a task that stays
behind its likes for ever does not starve the others. (L. Zheng et al., Ansor, OSDI 2020, section 6,
with its a = 0.2 and b = 2.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tuner.task import Task
from tuner.trial import MeasuredTrial

WINDOW = 48
"""Trials that make the recent past of a task (d in the formula)."""
TRUST_IN_THE_PAST = 0.2
SLACK = 2.0
"""How many times slower than its likes a task is expected to stay."""


@dataclass(frozen=True)
class Progress:
    """A task, and its trials so far, in order."""

    task: Task
    trials: Sequence[MeasuredTrial]

    def best_secs(self, num_trials: int) -> float:
        """Return the best time of the first trials; infinity without a right one."""
        return min((t.best_secs for t in self.trials[:num_trials]), default=math.inf)


def choose(progress: Sequence[Progress], open_tasks: Sequence[int]) -> int:
    """Return the place of the task that the next round is spent on.

    A task without trials comes first: nothing is known of it. Among equal gains the first is
    chosen. What is chosen depends on the trials alone, so that it can be repeated.

    Args:
        open_tasks: The places of those that are not exhausted.
    """
    fresh = [place for place in open_tasks if not progress[place].trials]
    if fresh:
        return fresh[0]
    return max(open_tasks, key=lambda place: (_gain(progress, place), -place))


def _gain(progress: Sequence[Progress], place: int) -> float:
    one = progress[place]
    num_trials = len(one.trials)
    now = one.best_secs(num_trials)
    if not math.isfinite(now):
        return 0.0  # what has not run yet may never run: the others first
    window = min(WINDOW, num_trials - 1)
    before = one.best_secs(num_trials - window)
    # Before its first right trial a task had no time that could have fallen.
    fallen = (before - now) / window if window and math.isfinite(before) else 0.0
    reach = SLACK * one.task.flops / _fastest_rate(progress, one.task)
    stale = num_trials - 1 - [t.best_secs for t in one.trials].index(now)
    hoped = max(now / num_trials, (now - reach) * math.exp2(-stale / WINDOW))
    return one.task.weight * (TRUST_IN_THE_PAST * fallen + (1 - TRUST_IN_THE_PAST) * hoped)


def _fastest_rate(progress: Sequence[Progress], task: Task) -> float:
    """Return the most operations a second that a task of the same operator reached."""
    return max(
        other.task.flops / other.best_secs(len(other.trials))
        for other in progress
        if other.task.func.name == task.func.name and other.task.target == task.target
    )
