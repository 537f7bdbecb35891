"""Files of records of made-up jobs, at any point of their lives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from uuid import UUID

from compiler.ir.printer import script
from compiler.runtime.measurement import ErrorKind
from compiler.target import Target
from loopwright.models import JobState, Strategy
from loopwright.server_models import ImportRead
from service.records.check import lines_of
from service.records.lines import (
    End,
    FinalLine,
    Header,
    JobLine,
    Line,
    TrialLine,
    WorkloadLine,
    written,
)
from service.records.merge import import_records
from service.records.write import Selection, export
from service.store.database import Database
from tests.integration.service.tuned import some_candidates, task_of
from tuner.budget import StopReason
from tuner.candidate import Candidate, default_candidate
from tuner.finish.finish import Outcome
from tuner.space.generate import design_space
from tuner.task import Task

SPECS = ("matmul:8,8,8", "matmul:16,8,8")
TARGETS = ("cpu -mcpu=znver3 -num-cores=1", "cpu -mcpu=skylake-avx512 -num-cores=2")
START = datetime(2026, 1, 1, tzinfo=UTC)
NUM_TRIALS = 6


@cache
def candidates(spec: str) -> list[Candidate]:
    """Return the default schedule, and others."""
    found = some_candidates(design_space(task_of(spec)), 4 * NUM_TRIALS)
    return list({c.key: c for c in (default_candidate(), *found)}.values())


@cache
def task(spec: str, target: str) -> Task:
    return task_of(spec, Target(target).name)


@dataclass(frozen=True)
class History:
    """A job as it goes: its first trials, and once it has all of them, its end."""

    job_id: UUID
    spec: str
    target: str
    seed: int

    def lines(self, num_trials: int, *, is_ended: bool) -> list[Line]:
        """Return the job after so many trials."""
        rng = random.Random(self.seed)
        trials = [self._trial(number, rng) for number in range(NUM_TRIALS)]
        right = [trial for trial in trials if trial.error is None]
        has_finish = is_ended and num_trials == NUM_TRIALS and bool(right) and rng.random() < 0.7
        finals = [self._final(trial, rng, place) for place, trial in enumerate(right[:3])]
        return [
            self._job(trials[:num_trials], is_ended=is_ended, num_finishes=int(has_finish)),
            *trials[:num_trials],
            *(finals if has_finish else ()),
        ]

    def workload(self) -> WorkloadLine:
        where = task(self.spec, self.target)
        return WorkloadLine(key=where.workload_key, script=script(where.func), created_at=START)

    def _at(self, minutes: int) -> datetime:
        return START + timedelta(hours=self.seed % 7, minutes=minutes)

    def _job(self, trials: Sequence[TrialLine], *, is_ended: bool, num_finishes: int) -> JobLine:
        where = task(self.spec, self.target)
        times = [trial.best_secs for trial in trials if trial.best_secs is not None]
        state = JobState.RUNNING
        if is_ended:
            state = JobState.SUCCEEDED if times else JobState.FAILED
        return JobLine(
            id=self.job_id,
            workload_key=where.workload_key,
            target=where.target.name,
            state=state,
            trials=NUM_TRIALS,
            seconds=None,
            plateau=None,
            seed=self.seed,
            strategy=Strategy.RANDOM,
            rules=None,
            owner="somebody",
            best_secs=min(times, default=None),
            best_low_secs=None,
            best_high_secs=None,
            default_secs=trials[0].best_secs if trials else None,
            active_secs=float(len(trials)),
            num_finishes=num_finishes,
            created_at=self._at(0),
            started_at=self._at(1),
            finished_at=self._at(30) if is_ended else None,
            stop_reason=StopReason.BUDGET if is_ended else None,
            error=None,
        )

    def _trial(self, number: int, rng: random.Random) -> TrialLine:
        candidate = candidates(self.spec)[number]
        error = rng.choice([None, None, None, ErrorKind.WRONG_RESULT, ErrorKind.CRASH])
        return TrialLine(
            job_id=self.job_id,
            number=number,
            candidate_key=candidate.key,
            round=number // 2,
            sketch=candidate.sketch,
            trace=candidate.trace.to_json(),
            predicted=rng.choice([None, rng.random()]),
            error=error,
            message="" if error is None else "it said\nthis: \u00e4 \u2603",
            run_secs=() if error else tuple(rng.uniform(1e-6, 1e-3) for _ in range(3)),
            max_error=rng.choice([None, 1e-7, float("inf"), float("nan")]),
            build_secs=rng.random(),
            check_secs=rng.random(),
            time_secs=rng.random(),
            worker="host/0",
            toolchain="llvm 20",
            created_at=self._at(2 + number),
        )

    def _final(self, trial: TrialLine, rng: random.Random, place: int) -> FinalLine:
        secs = rng.uniform(1e-6, 1e-3)
        return FinalLine(
            job_id=self.job_id,
            finish=1,
            number=trial.number,
            outcome=(Outcome.KEPT, Outcome.TIED, Outcome.FAILED)[place],
            run_secs=secs if place < 2 else None,
            low_secs=secs * 0.9 if place < 2 else None,
            high_secs=secs * 1.1 if place < 2 else None,
            rounds=((secs, secs),) if place < 2 else (),
            error=None if place < 2 else ErrorKind.CRASH,
            message="",
            workers=("host/0",),
            toolchain="llvm 20",
            created_at=self._at(29),
        )


def file_of(versions: Sequence[tuple[History, int, bool]]) -> bytes:
    """Return a file with jobs, each after so many trials and perhaps at its end."""
    workloads = {history.spec: history.workload() for history, _, _ in versions}
    content: list[Line] = list(workloads.values())
    for history, num_trials, is_ended in versions:
        content += history.lines(num_trials, is_ended=is_ended)
    header = Header(loopwright="0", exported_at=START)
    return "".join(map(written, [header, *content, End(num_lines=len(content))])).encode()


def put(database: Database, content: bytes) -> ImportRead:
    """Import a file."""
    file = BytesIO(content)
    return import_records(database, lambda: lines_of(file))


def get(database: Database, selection: Selection | None = None) -> bytes:
    """Export a file."""
    return "".join(export(database, selection or Selection())).encode()


def content_of(file: bytes) -> list[bytes]:
    """Return the lines of a file but its header, which tells the time."""
    return file.splitlines()[1:]
