"""Jobs that tests drive: submitted, changed, interrupted at will, and looked at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any
from uuid import UUID

from compiler.ir.core.program import IRModule
from compiler.runtime.measurement import Measurement
from service.coordinator.coordinator import Coordinator
from service.jobs.jobs import submit_job
from service.store.database.database import Database
from service.store.jobs import controls, jobs
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.wire.models import JobRead, JobState
from service.wire.requests import JobCreate, Strategy, Workload
from tests.patience import PATIENCE_SECS
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task

TRIALS = 24


def cost(candidate: Candidate) -> float:
    """Return a run time that is fixed for each candidate; the default is the slowest."""
    return 1.0 if candidate.sketch == DEFAULT_SKETCH else 0.1 + int(candidate.key[:4], 16) / 2**17


def submit(database: Database, *, strategy: Strategy = Strategy.RANDOM, **options: Any) -> UUID:
    """Submit a job that knows nothing of those before it."""
    asked = {"max_trials": TRIALS, "warm_start": False, "strategy": strategy, **options}
    request = JobCreate(workload=Workload(operator="matmul:32,32,32"), **asked)
    return submit_job(database, request)[0].id


def read(database: Database, job_id: UUID) -> JobRead:
    with database.read() as session:
        return jobs.read(jobs.get(session, job_id))


def rows(database: Database, job_id: UUID) -> list[TrialRow]:
    with database.read() as session:
        return trials.of_job(session, job_id)


def keys(database: Database, job_id: UUID) -> list[str]:
    return [row.candidate_key for row in rows(database, job_id)]


def act(database: Database, name: str, job_id: UUID, **changes: Any) -> JobState:
    """Do to a job what a user does; return the state that it has then."""
    with database.write() as session:
        if name == "change":
            return controls.change(session, job_id, changes).state
        return getattr(controls, name)(session, job_id).state  # type: ignore[no-any-return]


def drive(database: Database, measurer: Any = None) -> None:
    assert Coordinator(database, measurer or MemoryMeasurer(cost)).run_one()


def wait_for_end(database: Database, job_id: UUID) -> JobRead:
    deadline = time.monotonic() + PATIENCE_SECS
    while not read(database, job_id).state.is_final:
        assert time.monotonic() < deadline, "the job does not end"
        time.sleep(0.02)
    return read(database, job_id)


class Interrupting:
    """Calls `act` before the result of the n-th candidate; asked for more, it goes on."""

    def __init__(self, at: int, act: Callable[[], object]) -> None:
        self.memory = MemoryMeasurer(cost)
        self._at = at
        self._act = act
        self._seen = 0

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        for answer in self.memory.measure(task, candidates, incumbent_secs):
            self._seen += 1
            if self._seen == self._at:
                self._act()
            yield answer

    def measure_module(self, task: Task, module: IRModule) -> Measurement:
        return self.memory.measure_module(task, module)

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for answer in self.memory.compare(task, candidates, num_rounds, seed):
            self._seen += 1
            if self._seen == self._at:
                self._act()
            yield answer


class Stuck(MemoryMeasurer):
    """Never gives more than a few results; `interrupt` makes the next an error. It compares."""

    def __init__(self, num_results: int) -> None:
        super().__init__(cost)
        self._num_results = num_results
        self.begun, self.interrupted = Event(), Event()

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        for index in range(self._num_results):
            yield index, Measurement((cost(candidates[index]),))
        self.begun.set()
        assert self.interrupted.wait(PATIENCE_SECS)
        raise ConnectionError("the workers were ended")
