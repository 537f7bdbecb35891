"""What is claimed of the best schedule if all schedules of its space were measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tuner.space.generate import design_space
from tuner.task import Task
from tuner.trial import MeasuredTrial

WHOLE_SPACE = 256
"""A space of at most so many schedules is measured whole; 240 of `softmax` took 25 s of processor
time on a busy Zen 3. Chosen.
"""


@dataclass(frozen=True, slots=True)
class WholeSpace:
    """The claim of a search that measured every schedule of its space.

    Attributes:
        num_schedules: Their number, without the default schedule.
        margin: The share of time that another one may save against the best, at most, with a
            confidence of 95%; 0 if the best won against all others.
    """

    num_schedules: int
    margin: float

    def __str__(self) -> str:
        """Return the claim in words."""
        best = f"best of all {self.num_schedules} schedules"
        return f"{best}{f', within {100 * self.margin:.2g}%' if self.margin else ''}, at 95%"

    def to_json(self) -> dict[str, object]:
        """Return the claim as `GET /jobs/{id}` shows it."""
        return {
            "num_schedules": self.num_schedules,
            "is_whole": True,
            "bound": self.margin,
            "expected": None,
            "text": str(self),
        }


def small_space(task: Task, rules: Collection[str] | None) -> int | None:
    """Return the number of schedules of a small space; None for a larger one."""
    space = design_space(task, rules)
    if not all(map(space.is_small, range(len(space.sketches)))):
        return None
    number = sum(space.count(sketch).number for sketch in range(len(space.sketches)))
    return number if number <= WHOLE_SPACE else None


def measured_whole(
    task: Task, trials: Sequence[MeasuredTrial], rules: Collection[str] | None
) -> int | None:
    """Return the number of schedules of the space, if the trials are all of them."""
    number = small_space(task, rules)
    num_measured = sum(trial.number > 0 for trial in trials)
    return number if number and num_measured >= number else None
