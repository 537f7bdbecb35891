"""Generate a database with a job of many trials, for benchmarks of reading.

The schedules are a few thousand distinct points of the design space of a product, used repeatedly.
Outcomes, times and predictions follow from a seed. Nothing is compiled or measured. `python -m
benchmarks.service.large_job PATH [TRIALS]` writes one.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import insert, select

import loopwright as lw
from compiler.runtime.measurement import ErrorKind
from compiler.schedule.trace.trace_json import decided_numbers
from service.intake.request_validation import parse_target, read_workload
from service.store import targets, workloads
from service.store.database.base import utc_now
from service.store.database.database import Database, open_database
from service.store.jobs import events, jobs
from service.store.jobs.jobs import JobRow, NewJob
from service.store.trials import sketches, trial_chunks
from service.store.trials.trials import TrialRow
from service.wire.models import EventKind, JobState
from service.wire.requests import Strategy, Workload
from tuner.loop.budget import StopReason
from tuner.loop.progress import Point, add_point
from tuner.space.generate import design_space
from tuner.task import Task

OPERATOR = "matmul:512,512,512:float32"
TARGET = "cpu -num-cores=1"
NUM_DISTINCT = 2000
TRIALS_PER_SEC = 20
FAILURES = (
    (ErrorKind.TIMEOUT, 0.02, "the kernel did not finish within 0.5 s"),
    (ErrorKind.WRONG_RESULT, 0.005, "C[17, 3] is 4.25, not 4.125 (tolerance 1e-05)"),
    (ErrorKind.CRASH, 0.002, "the process that ran the kernel ended by signal 11"),
)
_CHUNK = 5000


def add_large_job(database: Database, num_trials: int, seed: int = 0) -> UUID:
    """Add a finished job of `num_trials` trials; return its id."""
    workload, target = read_workload(Workload(operator=OPERATOR)), parse_target(TARGET)
    with database.write() as session:
        workloads.ensure(session, workload)
        targets.ensure(session, target.name, target.label)
        asked = NewJob(
            workload_key=workload.key,
            workload_name=workload.name,
            target=target.name,
            max_trials=num_trials,
            seed=seed,
            strategy=Strategy.EVOLUTIONARY,
        )
        job_id = jobs.submit(session, asked).id
    started = utc_now() - timedelta(seconds=num_trials / TRIALS_PER_SEC)
    default = None
    points: list[Point] = []
    for chunk in _chunks(num_trials, job_id, started, seed):
        for row in chunk:
            if row["best_secs"] is not None:
                points = add_point(points, row["number"] + 1, row["best_secs"])
        default = chunk[0]["best_secs"] if default is None else default
        with database.write() as session:
            session.execute(insert(TrialRow), chunk)
            payload = {
                "num_measured": chunk[-1]["number"] + 1,
                "best_secs": points[-1][1],
                "default_secs": default,
            }
            events.append(session, job_id, EventKind.TRIALS, payload)
    with database.write() as session:
        _finish(jobs.get(session, job_id), num_trials, started, points, default)
        trial_chunks.pack(session, job_id, num_trials)
        names = session.scalars(select(TrialRow.sketch).where(TrialRow.job_id == job_id).distinct())
        sketches.ensure(session, job_id, workload.key, names)
        jobs.record_state(session, jobs.get(session, job_id))
    return job_id


def _finish(
    row: JobRow,
    num_trials: int,
    started: datetime,
    points: list[Point],
    default: float | None,
) -> None:
    row.state, row.stop_reason = JobState.SUCCEEDED, StopReason.BUDGET
    row.num_measured, row.best_secs, row.default_secs = num_trials, points[-1][1], default
    row.progress = [list(point) for point in points]
    row.created_at = row.started_at = started
    row.finished_at = utc_now()
    row.active_secs = num_trials / TRIALS_PER_SEC


def _chunks(
    num_trials: int, job_id: UUID, started: datetime, seed: int
) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows of the trials, the first of which is the default schedule."""
    rng = np.random.default_rng(seed)
    schedules = _schedules(rng)
    # The cost of each schedule, and a search that finds good ones more often over time.
    costs = 2e-3 * np.exp(rng.gamma(2.0, 0.6, len(schedules)))
    ranked = np.argsort(costs)[::-1]
    kinds = [kind for kind, _, _ in FAILURES]
    messages = {kind: message for kind, _, message in FAILURES}
    shares = np.array([share for _, share, _ in FAILURES])
    chunk: list[dict[str, Any]] = []
    for number in range(num_trials):
        reach = 1 + int((len(ranked) - 1) * rng.beta(1 + 3 * number / num_trials, 1.5))
        place = int(ranked[min(reach, len(ranked) - 1)]) if number else int(ranked[0])
        sketch, trace = schedules[place]
        secs = (costs[place] * rng.lognormal(0.02, 0.02, 5)).tolist()
        draw = int(np.searchsorted(shares.cumsum(), rng.random()))
        error = kinds[draw] if number and draw < len(kinds) else None
        chunk.append(
            {
                "job_id": job_id,
                "number": number,
                "candidate_key": hashlib.sha256(f"{job_id} {number}".encode()).hexdigest(),
                "round": number // 64,
                "sketch": sketch,
                "trace": trace,
                "decisions": decided_numbers(trace),
                "predicted": float(rng.normal(-np.log(costs[place]), 0.4)) if number else None,
                "error": error,
                "message": messages.get(error, "") if error else "",
                "run_secs": [] if error else secs,
                "best_secs": None if error else min(secs),
                "max_error": None if error else 1e-6,
                "build_secs": float(rng.uniform(0.01, 0.03)),
                "check_secs": float(rng.uniform(0.001, 0.003)),
                "time_secs": float(rng.uniform(0.01, 0.02)),
                "worker": f"worker-{number % 2}",
                "toolchain": "llvm-0",
                "created_at": started + timedelta(seconds=number / TRIALS_PER_SEC),
            }
        )
        if len(chunk) == _CHUNK or number == num_trials - 1:
            yield chunk
            chunk = []


def _schedules(rng: np.random.Generator) -> list[tuple[str, dict[str, object]]]:
    """Draw schedules of all sketches, each with its sketch's name."""
    space = design_space(Task(lw.ops.from_spec(OPERATOR), lw.Target(TARGET)))
    share = -(-NUM_DISTINCT // len(space.sketches))
    drawn = []
    for sketch in range(len(space.sketches)):
        for row in space.draw(sketch, share, rng).tolist():
            candidate = space.sketches[sketch].candidate(tuple(row))
            drawn.append((candidate.sketch, candidate.trace.to_json()))
    return drawn


if __name__ == "__main__":
    database = open_database(f"sqlite:///{sys.argv[1]}")
    print(add_large_job(database, int(sys.argv[2]) if len(sys.argv) > 2 else 100_000))
    database.close()
