"""Choose the task that gets the next round: the one with the largest expected gain.

The objective is the weighted time of all tasks together, the sum over tasks of w_i g_i, where
g_i is the best time of task i in seconds. The expected reduction by a trial on task i is

    gain_i = w_i (a (g_i(t_i - d) - g_i(t_i)) / d
                  + (1 - a) max(g_i(t_i) / t_i, g_i(t_i) - b C_i / V_i))

after t_i trials on it. The first term is the gain of its last d trials. The second is the
optimistic guess: the time falls as 1 / t, or the task reaches the rate of similar tasks. C_i is the
number of operations of the task, and V_i the highest rate that a task of its operator reached. The
guess is halved after every d trials without a gain, so that a task that stays behind similar ones
does not starve the others. (L. Zheng et al., Ansor, OSDI 2020, section 6, with its a = 0.2 and b =
2.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuner.task import Task
from tuner.trial import MeasuredTrial

WINDOW = 48
"""Trials in the recent past of a task (d in the formula): three rounds; chosen, not measured."""
PAST_WEIGHT = 0.2
"""The weight of the past against the optimistic guess (a in the formula; Ansor, section 6)."""
SLACK = 2.0
"""How many times slower than similar tasks a task is expected to stay (b; Ansor, section 6)."""


@dataclass(frozen=True)
class Progress:
    """A task, and its trials so far, in order."""

    task: Task
    trials: Sequence[MeasuredTrial]

    def best_secs(self, num_trials: int) -> float:
        """Return the best time of the first trials; infinity without a correct one."""
        return min((t.best_secs for t in self.trials[:num_trials]), default=math.inf)


def choose(progress: Sequence[Progress], open_tasks: Sequence[int]) -> int:
    """Return the index of the task that the next round is spent on.

    A task without trials comes first. Among equal gains the first wins. The choice depends on the
    trials alone, so that it can be repeated.

    Args:
        open_tasks: The indices of the tasks that are not exhausted.
    """
    fresh = [index for index in open_tasks if not progress[index].trials]
    if fresh:
        return fresh[0]
    return max(open_tasks, key=lambda index: (_gain(progress, index), -index))


def _gain(progress: Sequence[Progress], index: int) -> float:
    task_progress = progress[index]
    num_trials = len(task_progress.trials)
    best_secs = task_progress.best_secs(num_trials)
    if not math.isfinite(best_secs):
        return 0.0  # a task without a correct trial may never get one: the others come first
    stale = num_trials - 1 - [t.best_secs for t in task_progress.trials].index(best_secs)
    rate = _fastest_rate(progress, task_progress.task)
    # A task without operations has no rate: its time can only fall as 1 / t.
    reach = SLACK * task_progress.task.flops / rate if rate else best_secs
    return task_progress.task.weight * expected_gain(
        num_trials, task_progress.best_secs, stale, reach
    )


def expected_gain(
    num_trials: int, best_secs: Callable[[int], float], stale: int, reach_secs: float
) -> float:
    """Return the seconds of one run that the next trial of a task is expected to save.

    Args:
        num_trials: The number of trials so far, of which one or more are correct.
        best_secs: The best time of the first trials, by their number; infinity without one.
        stale: The number of trials since the best one.
        reach_secs: The time of the task at the rate of similar tasks, with `SLACK`.
    """
    best = best_secs(num_trials)
    window = min(WINDOW, num_trials - 1)
    before = best_secs(num_trials - window)
    # Before its first correct trial, a task has no best time that could fall.
    fallen = (before - best) / window if window and math.isfinite(before) else 0.0
    hoped = max(best / num_trials, (best - reach_secs) * math.exp2(-stale / WINDOW))
    return PAST_WEIGHT * fallen + (1 - PAST_WEIGHT) * hoped


def _fastest_rate(progress: Sequence[Progress], task: Task) -> float:
    """Return the highest rate, in operations a second, of a task of the same operator."""
    return max(
        other.task.flops / other.best_secs(len(other.trials))
        for other in progress
        if other.task.func.name == task.func.name and other.task.target == task.target
    )
