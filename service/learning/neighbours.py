"""The tuned tasks of one operator that are nearest to a shape, with their fastest trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.orm import Session

from compiler.target.target import Target
from service.store import relatives
from service.store.relatives import TunedTask
from service.store.tasks import load_task, parse_candidate
from service.store.trials.trials import TrialRow
from tuner.task import Task
from tuner.transfer.seed import BEST_OF_EACH, NUM_RELATIVES, Relative
from tuner.transfer.shape import Shape, distance, shape_from_json, target_distance


@dataclass(frozen=True)
class Neighbour:
    """A tuned task of the same operator, its distance, and its fastest trials."""

    distance: float
    tuned: TunedTask
    task: Task
    trials: Sequence[TrialRow]

    @property
    def relative(self) -> Relative:
        """Return the task and its candidates in the form that the tuner reads."""
        return Relative(self.task, tuple(parse_candidate(t.sketch, t.trace) for t in self.trials))


def nearest(
    session: Session, shape: Shape, target: Target, *, limit: int = NUM_RELATIVES
) -> list[Neighbour]:
    """Return the tuned tasks that are nearest to a shape on a target, the nearest first."""
    tuned = relatives.of_operator(session, shape.operator, target.timing_label)
    ranked = sorted(((task_distance(shape, target, t), t) for t in tuned), key=lambda pair: pair[0])
    return [_neighbour(session, far, task) for far, task in ranked[:limit]]


def task_distance(shape: Shape, target: Target, tuned: TunedTask) -> float:
    """Return the distance of a tuned task from a shape on a target, in doublings."""
    other = shape_from_json(shape.operator, tuned.shape)
    return distance(shape, other) + target_distance(target, Target(tuned.target))


def _neighbour(session: Session, far: float, tuned: TunedTask) -> Neighbour:
    task = load_task(session, tuned.workload_key, tuned.target)
    trials = relatives.best_trials(session, tuned.workload_key, tuned.target, limit=BEST_OF_EACH)
    return Neighbour(far, tuned, task, trials)
