"""Generate a database with invented trials of many tasks.

Its traces are short: a look-up reads only one, and a million long ones would take gigabytes.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import insert

from service.intake.request_validation import parse_target, read_workload
from service.store import targets, workloads
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow, NewJob
from service.store.results.settle import settle
from service.store.trials.trials import TrialRow
from service.wire.models import JobState
from service.wire.requests import Strategy, Workload
from tuner.candidate import default_candidate


def add_many_trials(
    database: Database, num_trials: int, num_tasks: int
) -> tuple[list[tuple[str, str]], UUID]:
    """Add `num_tasks` tasks, each with a finished job, and one queued job.

    Returns:
        The tasks by workload and target, and the id of the queued job.
    """
    target = parse_target("cpu -num-cores=1")
    with database.write() as session:
        targets.ensure(session, target.name, target.label)
    tasks, rng = [], np.random.default_rng(0)
    for number in range(num_tasks):
        workload = read_workload(Workload(operator=f"matmul:64,64,{8 * (number + 1)}"))
        with database.write() as session:
            workloads.ensure(session, workload)
            asked = NewJob(
                workload_key=workload.key,
                workload_name=workload.name,
                target=target.name,
                max_trials=num_trials // num_tasks,
                seed=0,
                strategy=Strategy.EVOLUTIONARY,
            )
            job = jobs.submit(session, asked)
            secs = rng.lognormal(-8, 1, asked.max_trials)
            session.execute(insert(TrialRow), [_row(job, n, s) for n, s in enumerate(secs)])
            _end(job, secs)
            settle(session, workload.key, target.name)
        tasks.append((workload.key, target.name))
    with database.write() as session:
        return tasks, jobs.submit(session, asked).id


def _row(job: JobRow, number: int, secs: float) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "number": number,
        "candidate_key": f"{number:064x}",
        "round": number // 16,
        "sketch": "default",
        "trace": default_candidate().trace.to_json(),
        "decisions": [],
        "predicted": None,
        "error": None,
        "message": "",
        "run_secs": [secs] * 5,
        "best_secs": secs,
        "max_error": 0.0,
        "build_secs": 0.02,
        "check_secs": 0.01,
        "time_secs": 0.02,
        "worker": "w0",
        "toolchain": "llvm",
        "created_at": utc_now(),
    }


def _end(job: JobRow, secs: np.ndarray[Any, Any]) -> None:
    job.state = JobState.SUCCEEDED
    job.num_measured = len(secs)
    job.best_secs, job.default_secs = float(secs.min()), float(secs[0])
    job.started_at = job.finished_at = utc_now()
