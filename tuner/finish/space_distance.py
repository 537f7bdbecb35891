"""How far the best schedule is from the best of its space, if not all of it was measured.

A search proposes what its cost model expects to be fast. A faster schedule that it has not measured
is one of which the model is wrong. So the distance is estimated in units of the model's errors: the
root mean square of measured less predicted speeds, over the later half of the trials, where a speed
is the best time over the time of a trial. Of N errors with an exponential tail, the largest grows
as the logarithm of N, and so does the bound.

The factors are calibrated: searches were played on recorded sets, whose best is known, each with a
model of other operators (`python -m benchmarks space_distance`). They hold for searches that begin
with such a model. Others are further from the best, so nothing is claimed of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tuner.space.generate import design_space
from tuner.task import Task
from tuner.trial import MeasuredTrial

BOUND_FACTOR = 0.136
"""The 95% quantile of distances in units of errors times log N, after one round of 16 trials, the
shortest search with an estimate; longer ones are nearer. `docs/tuning.md` has the coverage.
"""
EXPECTED_FACTOR = 0.025
"""Their mean after one round."""
MIN_TRIALS = 16
"""With fewer trials, there are too few predictions to know their errors. One round."""
KIND = "cpu"
"""The kind of targets of the recorded sets."""


@dataclass(frozen=True, slots=True)
class SpaceDistance:
    """The estimated distance of the best schedule from the best of its space.

    Attributes:
        num_schedules: The number of schedules of the space, perhaps estimated.
        expected: The share of time that the best of the space is expected to save.
        bound: The share that it saves at most, in 95% of searches on recorded sets.
    """

    num_schedules: int
    expected: float
    bound: float

    def __str__(self) -> str:
        """Return the estimate in words."""
        return (
            f"best of about {self.num_schedules:,} schedules: an estimated"
            f" {100 * self.expected:.2g}% faster, at most {100 * self.bound:.2g}% at 95%"
        )

    def to_json(self) -> dict[str, object]:
        """Return the estimate as `GET /jobs/{id}` shows it."""
        return {
            "num_schedules": self.num_schedules,
            "is_whole": False,
            "bound": self.bound,
            "expected": self.expected,
            "text": str(self),
        }


def space_distance(
    task: Task, trials: Sequence[MeasuredTrial], rules: Collection[str] | None
) -> SpaceDistance | None:
    """Return the estimate for a search; None without a calibration for it.

    Args:
        trials: All its trials, by number.
        rules: The names of the schedule rules that made its space; None for all.
    """
    if task.target.kind != KIND:
        return None
    space = design_space(task, rules)
    number = sum(space.count(sketch).number for sketch in range(len(space.sketches)))
    return estimated(trials, number)


def estimated(trials: Sequence[MeasuredTrial], num_schedules: int) -> SpaceDistance | None:
    """Return the estimate for trials in a space of so many schedules; see `space_distance`."""
    errors = _errors(trials)
    if len(trials) < MIN_TRIALS or num_schedules <= len(trials) or not errors:
        return None
    rms = math.sqrt(sum(error**2 for error in errors) / len(errors))
    scale = rms * math.log(num_schedules)
    return SpaceDistance(
        num_schedules, min(EXPECTED_FACTOR * scale, 1.0), min(BOUND_FACTOR * scale, 1.0)
    )


def _errors(trials: Sequence[MeasuredTrial]) -> list[float]:
    """Return measured less predicted speeds; none if the search began without predictions."""
    best_secs = min((trial.best_secs for trial in trials), default=math.inf)
    first_round = [trial for trial in trials if trial.round == 0 and trial.number > 0]
    is_predicted = any(trial.predicted is not None for trial in first_round)
    if math.isinf(best_secs) or not is_predicted:
        return []
    later = trials[len(trials) // 2 :]
    return [
        best_secs / trial.best_secs - trial.predicted
        for trial in later
        if trial.predicted is not None
    ]
