"""The adapted schedule of the nearest shape, for a workload that was never tuned.

A returned schedule was replayed on the workload, so it is legal; it was not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from compiler.schedule.error import ScheduleError
from compiler.target.target import Target
from service.common.new_workload import NewWorkload
from service.learning.neighbours import Neighbour, nearest
from service.schedules.expected_loss import Expectation, expected_loss
from service.store.database.database import Database
from service.store.tasks import parse_task
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.wire.models import BestRead, NearestRead
from tuner.candidate import Candidate
from tuner.transfer.seed import Relative, refitted
from tuner.transfer.shape import shape_from_json


@dataclass(frozen=True)
class _Adaptation:
    """A schedule to adapt and its new workload; the keys identify all other fields."""

    workload_key: str
    target: str
    source_key: str
    source_target: str
    candidate_key: str
    script: str = field(compare=False)
    source: Relative = field(compare=False)


def adapt_nearest(database: Database, workload: NewWorkload, target: Target) -> BestRead | None:
    """Return the adapted best schedule of the nearest shape that fits, or None."""
    if workload.operator_key is None or workload.shape is None:
        return None
    shape = shape_from_json(workload.operator_key, workload.shape)
    with database.read() as session:
        relatives = nearest(session, shape, target)
    for near in relatives:
        for trial, candidate in zip(near.trials, near.relative.candidates, strict=True):
            adaptation = _Adaptation(
                workload.key,
                target.name,
                near.tuned.workload_key,
                near.tuned.target,
                trial.candidate_key,
                workload.script,
                Relative(near.task, (candidate,)),
            )
            adapted = _adapted(adaptation)
            if adapted is not None:
                with database.read() as session:
                    expected = expected_loss(
                        session, target.timing_label, shape.operator, near.distance
                    )
                return _read(adaptation, adapted, near, trial, expected)
    return None


@lru_cache(maxsize=256)
def _adapted(adaptation: _Adaptation) -> Candidate | None:
    """Return the first adapted candidate that replays on the workload, or None."""
    task = parse_task(adaptation.script, adaptation.target)
    for fit in refitted(task, [adaptation.source]):
        try:
            fit.candidate.trace.apply_to(task.func)
        except ScheduleError:
            continue
        return fit.candidate
    return None


def _read(
    adaptation: _Adaptation,
    adapted: Candidate,
    near: Neighbour,
    trial: TrialRow,
    expected: Expectation,
) -> BestRead:
    return BestRead(
        workload_key=adaptation.workload_key,
        target=adaptation.target,
        run_secs=None,
        default_secs=None,
        trace=adapted.trace.to_json(),  # type: ignore[arg-type]
        job_id=trial.job_id,
        trial_number=trial.number,
        provenance=trials.provenance(trial),
        nearest=NearestRead(
            workload_key=adaptation.source_key,
            target=adaptation.source_target,
            distance=near.distance,
            run_secs=min(trial.run_secs),
            expected_loss=expected.loss,
            basis=expected.basis,
        ),
    )
