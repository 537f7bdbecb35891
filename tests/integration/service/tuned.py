"""Tasks that were tuned, by times that a test made up."""

from __future__ import annotations

from uuid import UUID

import numpy as np

from compiler.ops.spec import from_spec
from compiler.runtime.measurement import Measurement
from compiler.target.target import Target
from service.common.owner import Owner
from service.jobs.jobs import submit_job
from service.store.database.database import Database
from service.store.jobs import claims
from service.store.jobs.jobs import JobRow
from service.store.results.sql_store import SqlStore
from service.wire.requests import JobCreate, Strategy, Workload
from tuner.candidate import Candidate, default_candidate
from tuner.space.design_space import Point, SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.transfer.seed import BEST_OF_EACH
from tuner.trial import MeasuredTrial

SPEC = "matmul:96,96,96"
OWNER = Owner.here()


def task_of(spec: str, target: str = "cpu -num-cores=1") -> Task:
    return Task(from_spec(spec), Target(target))


def some_candidates(space: SketchSpace, num: int) -> list[Candidate]:
    """Return candidates of a space, of each sketch in turn."""
    rng = np.random.default_rng(0)
    each = [space.draw(index, num, rng) for index in range(len(space.sketches))]
    found = [
        space.candidate(Point(index, tuple(rows[n].tolist())))
        for n in range(num)
        for index, rows in enumerate(each)
        if n < len(rows)
    ]
    return found[:num]


def tuned(
    database: Database, spec: str, *, best_secs: float = 0.25, target: str = "cpu -num-cores=1"
) -> tuple[UUID, list[MeasuredTrial]]:
    """Keep a job of `spec` whose trial 1 is the fastest, then 2, and so on; the default is last."""
    task = task_of(spec, target)
    request = JobCreate(workload=Workload(operator=spec), target=task.target.name, max_trials=16)
    job_id = submit_job(database, request)[0].id
    candidates = some_candidates(design_space(task), 2 * BEST_OF_EACH)
    trials = [
        MeasuredTrial(number, candidate, Measurement((best_secs * 2 ** ((number - 1) / 4),)))
        for number, candidate in enumerate(candidates, 1)
    ]
    slow = MeasuredTrial(0, default_candidate(), Measurement((32 * best_secs,)))
    SqlStore(database).add(str(job_id), task, [slow, *trials])
    return job_id, [slow, *trials]


def claimed(
    database: Database,
    spec: str = SPEC,
    *,
    warm_start: bool = True,
    strategy: Strategy = Strategy.EVOLUTIONARY,
) -> JobRow:
    """Return a new job that `OWNER` has claimed, like all before it."""
    target = task_of(spec).target.name
    request = JobCreate(
        workload=Workload(operator=spec),
        target=target,
        max_trials=64,
        warm_start=warm_start,
        strategy=Strategy(strategy),
    )
    job_id = submit_job(database, request)[0].id
    with database.write() as session:
        while found := claims.claim(session, OWNER):
            job = found[0]
            if job.id == job_id:
                return job
    raise AssertionError("the job is not there")
