"""Files of records of made-up jobs, at any point of their lives."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from io import BytesIO
from uuid import UUID

from compiler.ir.text.printer import script
from compiler.runtime.measurement import ErrorKind
from compiler.target.target import Target
from service.records.check import lines_of
from service.records.lines import (
    BaselineLine,
    ConditionsLine,
    End,
    FinalLine,
    GroupLine,
    Header,
    JobLine,
    Line,
    ResourcesLine,
    TargetLine,
    TrialLine,
    WorkloadLine,
    written,
)
from service.records.merge import import_records
from service.records.write import Selection, export
from service.store.database.database import Database
from service.wire.models import JobState
from service.wire.requests import Strategy
from service.wire.server_models import ImportRead
from tests.integration.service.tuned import some_candidates, task_of
from tuner.candidate import Candidate, default_candidate
from tuner.finish.contest import Outcome
from tuner.loop.budget import StopReason
from tuner.space.generate import design_space
from tuner.task import Task

SPECS = ("matmul:8,8,8", "matmul:16,8,8")
TARGETS = ("cpu -mcpu=znver3 -num-cores=1", "cpu -mcpu=skylake-avx512 -num-cores=2")
START = datetime(2026, 1, 1, tzinfo=UTC)
NUM_TRIALS = 6
RESOURCES = ResourcesLine(
    registers=40, stack_bytes=0, spill_bytes=8, shared_bytes=4096, occupancy=0.5
)
CONDITIONS = ConditionsLine(
    l2="cold", sm_mhz=1755, watts=640.5, celsius=61, slowed_by=("power cap",)
)


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
    group_id: UUID | None = None
    weight: float = 1.0

    def lines(self, num_trials: int, *, is_ended: bool, shared: int) -> list[Line]:
        """Return the job after so many trials, `shared` ones being those of its group."""
        rng = random.Random(self.seed)
        trials = [self._trial(number, rng) for number in range(NUM_TRIALS)]
        right = [trial for trial in trials if trial.error is None]
        has_finish = is_ended and num_trials == NUM_TRIALS and bool(right) and rng.random() < 0.7
        finals = [self._final(trial, rng, place) for place, trial in enumerate(right[:3])]
        return [
            self._job(trials[:num_trials], is_ended, int(has_finish), shared),
            *trials[:num_trials],
            *(finals if has_finish else ()),
            *(self._baselines(right[0], rng) if has_finish else ()),
        ]

    def workload(self) -> WorkloadLine:
        where = task(self.spec, self.target)
        return WorkloadLine(key=where.workload_key, script=script(where.func), created_at=START)

    def _at(self, minutes: int) -> datetime:
        return START + timedelta(hours=self.seed % 7, minutes=minutes)

    def _job(
        self, trials: Sequence[TrialLine], is_ended: bool, num_finishes: int, shared: int
    ) -> JobLine:
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
            max_trials=NUM_TRIALS if self.group_id is None else shared,
            max_secs=None,
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
            group_id=self.group_id,
            weight=self.weight,
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
            is_spot_checked=number % 2 == 1,
            build_secs=rng.random(),
            check_secs=rng.random(),
            time_secs=rng.random(),
            worker="host/0",
            toolchain="llvm 20",
            resources=RESOURCES if number % 2 else None,
            conditions=CONDITIONS if number % 2 else None,
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

    def _baselines(self, trial: TrialLine, rng: random.Random) -> list[BaselineLine]:
        return [
            BaselineLine(
                job_id=self.job_id,
                library=library,
                trial_number=trial.number,
                version=f"{library} 1",
                run_secs=rng.uniform(1e-6, 1e-3),
                kernel_secs=rng.uniform(1e-6, 1e-3),
                speedup=rng.uniform(0.1, 10),
                low=None,
                high=None,
                worker="host/0",
                toolchain="llvm 20",
                created_at=self._at(29),
            )
            for library in ("numpy", "onednn")[: self.seed % 3]
        ]


def file_of(
    versions: Sequence[tuple[History, int, bool]],
    shared: int = 3 * NUM_TRIALS,
    peak_flops: float | None = 1e11,
) -> bytes:
    """Return a file with jobs, each after so many trials and perhaps at its end.

    Args:
        shared: The budget of each group.
        peak_flops: What each target reaches.
    """
    histories = [history for history, _, _ in versions]
    workloads = {h.workload().key: h.workload() for h in histories}
    content: list[Line] = [workloads[key] for key in sorted(workloads)]
    targets = {task(h.spec, h.target).target.name for h in histories}
    content += [TargetLine(name=name, peak_flops=peak_flops) for name in sorted(targets)]
    for group_id in sorted({h.group_id for h in histories if h.group_id is not None}):
        content.append(GroupLine(id=group_id, max_trials=shared, created_at=START))
    for history, num_trials, is_ended in versions:
        content += history.lines(num_trials, is_ended=is_ended, shared=shared)
    header = Header(loopwright="0", exported_at=START)
    return "".join(map(written, [header, *content, End(num_lines=len(content))])).encode()


_NAMES_UNTIL_VERSION_2 = {
    "group": {"max_trials": "trials"},
    "job": {"max_trials": "trials", "max_secs": "seconds"},
    "baseline": {"trial_number": "number"},
}


def of_version_2(file: bytes) -> bytes:
    """Return a file as the second version wrote it, which had other names."""
    lines = [json.loads(line) for line in file.splitlines()]
    for line in lines:
        for name, earlier in _NAMES_UNTIL_VERSION_2.get(line["kind"], {}).items():
            line[earlier] = line.pop(name)
    lines[0]["version"] = 2
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def of_version_1(file: bytes) -> bytes:
    """Return a file as the first version wrote it, which knew neither groups nor peaks."""
    lines = [json.loads(line) for line in of_version_2(file).splitlines()]
    lines = [line for line in lines if line["kind"] not in {"target", "group", "baseline"}]
    for line in lines:
        line.pop("group_id", None)
        line.pop("weight", None)
    lines[0]["version"] = 1
    lines[-1]["num_lines"] = len(lines) - 2
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def put(database: Database, content: bytes) -> ImportRead:
    """Import a file."""
    file = BytesIO(content)
    return import_records(database, lines_of(file))


def get(database: Database, selection: Selection | None = None) -> bytes:
    """Export a file."""
    return "".join(export(database, selection or Selection())).encode()


def content_of(file: bytes) -> list[bytes]:
    """Return the lines of a file but its header, which tells the time."""
    return file.splitlines()[1:]
