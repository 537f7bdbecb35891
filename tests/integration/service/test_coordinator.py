"""The coordinator over a real database and search, with measurements from a formula."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from compiler.runtime.measurement import ErrorKind, Measurement
from loopwright.models import JobCreate, JobRead, JobState, Strategy, Workload
from service.coordinator import Coordinator
from service.jobs import submit_job
from service.owner import Owner
from service.schedules import find_best
from service.store import controls, cost_models, events, finals, jobs, leases, trials
from service.store.cost_models import CostModelRow
from service.store.database import Database
from service.store.trials import TrialRow
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task
from workers.engine import NoWorkerError

TRIALS = 24


def cost(candidate: Candidate) -> float:
    """Return a run time that is fixed for each candidate; the default is the slowest."""
    return 1.0 if candidate.sketch == DEFAULT_SKETCH else 0.1 + int(candidate.key[:4], 16) / 2**17


def submit(database: Database, *, strategy: Strategy = Strategy.RANDOM, **options: Any) -> UUID:
    """Submit a job that knows nothing of those before it."""
    asked = {"trials": TRIALS, "warm_start": False, "strategy": strategy, **options}
    request = JobCreate(workload=Workload(operator="matmul:32,32,32"), **asked)
    return submit_job(database, request)[0].id


def read(database: Database, job_id: UUID) -> JobRead:
    with database.read() as session:
        return jobs.read(jobs.get(session, job_id))


def rows(database: Database, job_id: UUID) -> list[TrialRow]:
    with database.read() as session:
        return trials.of_job(session, job_id)


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

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for answer in self.memory.compare(task, candidates, num_rounds, seed):
            self._seen += 1
            if self._seen == self._at:
                self._act()
            yield answer


@pytest.mark.parametrize("strategy", [Strategy.EVOLUTIONARY, Strategy.RANDOM])
def test_a_job_is_driven_to_its_end(database: Database, strategy: Strategy) -> None:
    job_id = submit(database, strategy=strategy)
    assert Coordinator(database, MemoryMeasurer(cost)).run_one()
    job = read(database, job_id)
    assert (job.state, job.num_measured, job.error) == (JobState.SUCCEEDED, TRIALS, None)
    assert job.default_secs == 1.0
    measured = rows(database, job_id)
    assert [row.number for row in measured] == list(range(TRIALS))
    assert job.best_secs == min(row.best_secs for row in measured if row.best_secs is not None)
    best = find_best(database, job.workload_key, job.target)
    assert (best.run_secs, best.job_id, best.default_secs) == (job.best_secs, job_id, 1.0)


def test_nothing_to_do(database: Database) -> None:
    assert not Coordinator(database, MemoryMeasurer(cost)).run_one()


def test_a_job_without_a_right_trial_fails_and_says_how(database: Database) -> None:
    job_id = submit(database)

    def fail(candidate: Candidate) -> Measurement:
        is_default = candidate.sketch == DEFAULT_SKETCH
        kind = ErrorKind.WRONG_RESULT if is_default else ErrorKind.TIMEOUT
        return Measurement(error=kind, message=f"{kind} it was")

    Coordinator(database, MemoryMeasurer(fail)).run_one()
    job = read(database, job_id)
    assert job.state is JobState.FAILED
    assert job.error == (
        f"none of {TRIALS} trials ran and was right: {TRIALS - 1} timeout, 1 wrong_result; "
        "trial 1, the first timeout: timeout it was"
    )


def test_a_job_with_one_right_trial_succeeds(database: Database) -> None:
    job_id = submit(database)

    def only_the_default(candidate: Candidate) -> Measurement:
        if candidate.sketch == DEFAULT_SKETCH:
            return Measurement((0.5,))
        return Measurement(error=ErrorKind.CRASH, message="SIGSEGV")

    Coordinator(database, MemoryMeasurer(only_the_default)).run_one()
    job = read(database, job_id)
    assert (job.state, job.best_secs) == (JobState.SUCCEEDED, 0.5)


def test_a_job_leaves_its_cost_model_and_how_well_it_predicted(database: Database) -> None:
    job_ids = [submit(database, strategy=Strategy.EVOLUTIONARY) for _ in range(2)]
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    for _ in job_ids:
        coordinator.run_one()
    with database.read() as session:
        newest, oldest = cost_models.newest_first(session, limit=10)
        stored = session.scalars(select(CostModelRow.blob)).all()
    assert [m.version for m in (oldest, newest)] == [1, 2]
    assert [m.job_id for m in (oldest, newest)] == job_ids
    assert newest.trained_on == TRIALS
    accuracy = newest.quality["pairwise_accuracy"]
    assert isinstance(accuracy, float)
    assert 0 <= accuracy <= 1
    assert all(XGBoostModel(base=blob).is_trained for blob in stored)


@pytest.mark.parametrize(
    ("options", "reason", "num_measured"),
    [
        ({}, "budget", TRIALS),
        ({"plateau": 1, "trials": 99}, "plateau", 16),
        ({"seconds": 1e-6}, "time_budget", 1),
        ({"rules": ["spatial_blocks"], "trials": 999}, "exhausted", None),
    ],
)
def test_a_job_says_why_it_ended(
    database: Database, options: dict[str, Any], reason: str, num_measured: int | None
) -> None:
    job_id = submit(database, **options)
    Coordinator(database, MemoryMeasurer(lambda _: 0.5)).run_one()
    job = read(database, job_id)
    assert (job.state, job.stop_reason) == (JobState.SUCCEEDED, reason)
    assert num_measured in (None, job.num_measured)


def test_seconds_count_while_a_job_is_driven_and_go_on_after_a_stop(database: Database) -> None:
    job_id = submit(database, seconds=600.0)
    first = Coordinator(database, Interrupting(3, lambda: first.stop(0.0)))
    first.run_one()
    with database.write() as session:
        row = jobs.get(session, job_id)
        assert 0 < row.active_secs < 600
        assert row.active_at is None, "the clock stands still while nobody drives it"
        row.active_secs = 600.0
    Coordinator(database, MemoryMeasurer(cost)).run_one()
    job = read(database, job_id)
    assert (job.stop_reason, job.num_measured) == ("time_budget", 3)


def nearly_equal(candidate: Candidate) -> float:
    """Return run times of which several are close to the best."""
    return 1.0 if candidate.sketch == DEFAULT_SKETCH else 0.1 + cost(candidate) / 100


class Retimed(MemoryMeasurer):
    """Times candidates anew when they are compared: those that were fast are slow."""

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        slowest_first = sorted(candidates, key=nearly_equal, reverse=True)
        secs = [0.1 + 0.02 * slowest_first.index(candidate) for candidate in candidates]
        for number in range(num_rounds):
            yield [Measurement((s, s), worker=f"w{number % 2}", toolchain="t") for s in secs]


def test_the_best_is_what_the_finish_says(database: Database) -> None:
    job_id = submit(database)
    Coordinator(database, Retimed(nearly_equal)).run_one()
    job = read(database, job_id)
    with database.read() as session:
        kept, *others = sorted(finals.of_job(session, job_id), key=lambda row: row.outcome)
        last = events.after(session, job_id, 0)[-2:]
    assert kept.outcome == "kept"
    assert {row.outcome for row in others} == {"slower"}
    assert (job.best_secs, job.best_interval) == (kept.run_secs, (kept.low_secs, kept.high_secs))
    assert kept.run_secs == min(row.run_secs for row in (kept, *others) if row.run_secs)
    assert (len(kept.rounds), kept.workers, kept.toolchain) == (10, ["w0", "w1"], "t")
    assert [event.kind for event in last] == ["finish", "state"]
    assert last[0].payload["number"] == kept.number
    best = find_best(database, job.workload_key, job.target)
    assert (best.trial_number, best.run_secs, best.interval) == (
        kept.number,
        kept.run_secs,
        job.best_interval,
    )


class Lucky(MemoryMeasurer):
    """Times candidates well at first, and soberly when they are compared."""

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for measured in super().compare(task, candidates, num_rounds, seed):
            yield [Measurement((2.1 * m.best_secs,)) for m in measured]


def test_the_best_of_several_jobs_is_the_one_that_was_measured_best_in_the_end(
    database: Database,
) -> None:
    for _ in range(2):
        submit(database)
    Coordinator(database, MemoryMeasurer(cost)).run_one()
    Coordinator(database, Lucky(lambda c: cost(c) / 2)).run_one()
    with database.read() as session:
        second, first = jobs.newest(session, limit=2)
        best = find_best(database, first.workload_key, first.target)
    assert second.best_secs is not None
    assert first.best_secs is not None
    assert second.best_secs > first.best_secs
    assert (best.job_id, best.run_secs) == (first.id, first.best_secs)


def test_a_finish_that_breaks_leaves_the_job_its_result(database: Database) -> None:
    job_id = submit(database)

    def break_it() -> None:
        raise ConnectionError("the workers are gone")

    Coordinator(database, Interrupting(TRIALS + 3, break_it)).run_one()
    job = read(database, job_id)
    assert (job.state, job.num_measured, job.best_interval) == (JobState.SUCCEEDED, TRIALS, None)


def test_a_job_that_is_stopped_in_its_finish_goes_on_there(database: Database) -> None:
    job_id = submit(database)
    first = Coordinator(database, Interrupting(TRIALS + 3, lambda: first.stop(0.0)))
    first.run_one()
    assert read(database, job_id).state is JobState.QUEUED
    measurer = MemoryMeasurer(cost)
    Coordinator(database, measurer).run_one()
    job = read(database, job_id)
    assert (job.state, measurer.asked) == (JobState.SUCCEEDED, [])
    assert job.best_interval is not None


def test_a_coordinator_that_stops_puts_its_job_back(database: Database) -> None:
    job_id = submit(database)
    measurer = Interrupting(7, lambda: first.stop(0.0))
    first = Coordinator(database, measurer)
    first.run_one()
    job = read(database, job_id)
    assert (job.state, job.num_measured) == (JobState.QUEUED, 7)


@pytest.mark.parametrize("strategy", [Strategy.EVOLUTIONARY, Strategy.RANDOM])
@pytest.mark.parametrize("at", [1, 7, 16, 20])
def test_a_resumed_job_measures_what_an_undisturbed_one_does(
    database: Database, at: int, strategy: Strategy
) -> None:
    resumed, undisturbed = (submit(database, strategy=strategy) for _ in range(2))
    first_measurer = Interrupting(at, lambda: first.stop(0.0))
    first = Coordinator(database, first_measurer)
    first.run_one()
    second_measurer = MemoryMeasurer(cost)
    second = Coordinator(database, second_measurer)
    second.run_one()
    second.run_one()
    assert [row.candidate_key for row in rows(database, resumed)] == [
        row.candidate_key for row in rows(database, undisturbed)
    ]
    kept = first_measurer.memory.asked[:at]
    again = second_measurer.asked[: TRIALS - at]
    assert not {c.key for c in kept} & {c.key for c in again}
    assert read(database, resumed).num_measured == TRIALS


def test_a_measurer_that_breaks_costs_no_trial(database: Database) -> None:
    job_id = submit(database)

    def break_it() -> None:
        raise ConnectionError("the workers are gone")

    measurer = Interrupting(5, break_it)
    coordinator = Coordinator(database, measurer)
    coordinator.run_one()
    assert (read(database, job_id).state, len(rows(database, job_id))) == (JobState.QUEUED, 4)
    coordinator.run_one()
    assert read(database, job_id).state is JobState.SUCCEEDED
    assert len(rows(database, job_id)) == TRIALS


def test_a_measurer_that_is_broken_fails_the_job(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.coordinator._MAX_BACKOFF_SECS", 0.0)
    job_id = submit(database)

    def break_it(_: Candidate) -> float:
        raise ConnectionError("the workers are gone")

    coordinator = Coordinator(database, MemoryMeasurer(break_it))
    for _ in range(leases.MAX_FRUITLESS_CLAIMS):
        assert coordinator.run_one()
    assert not coordinator.run_one()
    job = read(database, job_id)
    assert job.state is JobState.FAILED
    assert job.error == "internal error: ConnectionError: the workers are gone"


def test_a_cancelled_job_keeps_its_trials(database: Database) -> None:
    job_id = submit(database)

    def cancel() -> None:
        with database.write() as session:
            controls.cancel(session, job_id)
        time.sleep(1.2)  # the heartbeat looks twice a second

    Coordinator(database, Interrupting(3, cancel)).run_one()
    job = read(database, job_id)
    assert (job.state, job.num_measured) == (JobState.CANCELLED, 3)
    assert job.stop_reason == "cancelled"
    assert job.finished_at is not None


class Stuck:
    """A measurer whose third result never comes; `interrupt` makes it an error."""

    def __init__(self) -> None:
        self.begun, self.interrupted = Event(), Event()

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        for index in range(2):
            yield index, Measurement((1.0,))
        self.begun.set()
        assert self.interrupted.wait(30)
        raise ConnectionError("the workers were ended")

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        raise AssertionError("it never comes to that")


def test_a_cancelled_job_does_not_wait_for_a_candidate_that_takes_long(database: Database) -> None:
    job_id = submit(database)
    stuck = Stuck()
    coordinator = Coordinator(database, stuck, interrupt=stuck.interrupted.set, patience_secs=0.2)
    coordinator.start()
    assert stuck.begun.wait(30)
    with database.write() as session:
        controls.cancel(session, job_id)
    assert stuck.interrupted.wait(10)
    assert coordinator.stop(10.0)
    job = read(database, job_id)
    assert (job.state, job.num_measured, job.error) == (JobState.CANCELLED, 2, None)


def test_a_job_whose_workers_end_while_it_stops_is_put_back(database: Database) -> None:
    job_id = submit(database)
    stuck = Stuck()
    coordinator = Coordinator(database, stuck)
    coordinator.start()
    assert stuck.begun.wait(30)
    assert not coordinator.stop(0.1)
    stuck.interrupted.set()
    assert coordinator.stop(10.0)
    with database.read() as session:
        row = jobs.get(session, job_id)
    assert (row.state, row.num_measured, row.error) == (JobState.QUEUED, 2, None)
    assert row.fruitless_claims == 0


def test_the_thread_outlives_an_error_that_nobody_foresaw(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, calls = leases.claim, iter([ValueError("a row that cannot be read")])

    def fail_once(*args: Any, **more: Any) -> Any:
        if (error := next(calls, None)) is not None:
            raise error
        return claim(*args, **more)

    monkeypatch.setattr(leases, "claim", fail_once)
    job_id = submit(database)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    coordinator.start()
    deadline = time.monotonic() + 30
    while not read(database, job_id).state.is_final and time.monotonic() < deadline:
        coordinator.wake()
        time.sleep(0.05)
    assert coordinator.stop(10.0)
    assert read(database, job_id).state is JobState.SUCCEEDED


def test_a_coordinator_that_lost_its_job_writes_nothing_more(database: Database) -> None:
    job_id = submit(database)
    thief = Owner.here()

    def steal() -> None:
        with database.write() as session:
            row = jobs.get(session, job_id)
            row.lease_owner = str(thief)

    Coordinator(database, Interrupting(5, steal)).run_one()
    job = read(database, job_id)
    assert (job.state, job.num_measured) == (JobState.RUNNING, 4)


def test_a_lease_is_renewed_while_a_measurement_takes_long(database: Database) -> None:
    job_id = submit(database)
    claimed_by_another: list[bool] = []

    def take_long() -> None:
        time.sleep(1.5)
        with database.write() as session:
            claimed_by_another.append(leases.claim(session, Owner.here()) != [])

    Coordinator(database, Interrupting(2, take_long), lease_secs=0.6).run_one()
    assert claimed_by_another == [False]
    assert read(database, job_id).state is JobState.SUCCEEDED


def test_the_thread_takes_jobs_as_they_come(database: Database) -> None:
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    coordinator.start()
    ids = [submit(database, seed=seed) for seed in range(2)]
    coordinator.wake()
    deadline = time.monotonic() + 30
    while not all(read(database, i).state.is_final for i in ids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert coordinator.is_running
    assert coordinator.stop(5.0)
    assert not coordinator.is_running
    assert [read(database, i).state for i in ids] == [JobState.SUCCEEDED] * 2


def test_stopping_waits_no_longer_than_told(database: Database) -> None:
    submit(database)
    begun, go_on = Event(), Event()

    def hang() -> None:
        begun.set()
        go_on.wait(30)

    coordinator = Coordinator(database, Interrupting(2, hang))
    coordinator.start()
    assert begun.wait(30)
    assert not coordinator.stop(0.1)
    go_on.set()
    assert coordinator.stop(10.0)


def test_a_job_for_a_machine_that_no_worker_has_says_what_to_do(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise NoWorkerError(
            "no worker serves cpu/other; start `loopwright worker` on such a machine"
        )

    job_id = submit(database)
    with database.write() as session:
        jobs.get(session, job_id).fruitless_claims = leases.MAX_FRUITLESS_CLAIMS - 1
    monkeypatch.setattr("service.coordinator._MAX_BACKOFF_SECS", 0.0)
    Coordinator(database, Interrupting(1, refuse)).run_one()
    job = read(database, job_id)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error.startswith("no worker serves cpu/other; start `loopwright worker`")
