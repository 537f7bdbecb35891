"""The end of a job: what it measured best is compared, and one is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import pytest
from sqlalchemy import update

from compiler.runtime.measurement import Measurement
from compiler.schedule.trace.trace import Trace
from compiler.script.parser import parse
from compiler.target.target import Target
from service.coordinator.coordinator import Coordinator
from service.jobs.jobs import submit_job
from service.reading.plots import Plots
from service.reading.queries import SchedulesQuery, TrialsQuery
from service.reading.schedule_list import list_schedules
from service.reading.trial_list import list_trials
from service.schedules.schedules import find_best
from service.store.database.database import Database
from service.store.jobs import events, jobs
from service.store.results import finals
from service.store.results.sql_store import SqlStore
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.store.workloads import WorkloadRow
from service.wire.models import JobState
from service.wire.requests import JobCreate, Strategy, Workload
from tests.integration.service.driving import (
    TRIALS,
    Interrupting,
    act,
    cost,
    drive,
    keys,
    read,
    submit,
)
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task
from tuner.trial import MeasuredTrial


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


def test_a_job_says_how_its_best_stands_in_the_space(database: Database) -> None:
    request = JobCreate(
        workload=Workload(operator="relu:64,64"),
        max_trials=256,
        strategy=Strategy.RANDOM,
        warm_start=False,
    )
    small, _ = submit_job(database, request)
    drive(database, Retimed(nearly_equal))
    space = read(database, small.id).space
    assert space is not None
    assert (space.is_whole, space.expected) == (True, None)
    assert space.num_schedules == read(database, small.id).num_measured - 1
    assert space.text.startswith(f"best of all {space.num_schedules} schedules")
    larger = submit(database, strategy=Strategy.EVOLUTIONARY, warm_start=True)
    drive(database)
    estimate = read(database, larger).space
    assert estimate is not None
    assert not estimate.is_whole
    assert estimate.expected is not None
    assert 0 < estimate.expected < estimate.bound < 1
    cold = submit(database, strategy=Strategy.EVOLUTIONARY)
    drive(database)
    assert read(database, cold).space is None


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


class Sober(MemoryMeasurer):
    """In the finish, all that a search finds later is slower than it seemed."""

    def __init__(self, kept: set[str]) -> None:
        super().__init__(cost)
        self.kept = kept

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for measured in super().compare(task, candidates, num_rounds, seed):
            yield [
                Measurement((0.01 if c.key in self.kept else m.best_secs,))
                for c, m in zip(candidates, measured, strict=True)
            ]


def test_what_a_finish_kept_is_compared_in_the_next_one(database: Database) -> None:
    """Else a job that goes on could end with a slower kernel than it had."""
    job_id = submit(database, max_trials=3)
    drive(database)
    with database.read() as session:
        kept = next(row for row in finals.of_job(session, job_id) if row.outcome == "kept")
    act(database, "change", job_id, max_trials=96)
    drive(database, Sober({keys(database, job_id)[kept.number]}))
    with database.read() as session:
        last = next(row for row in finals.of_job(session, job_id) if row.outcome == "kept")
    assert (last.number, read(database, job_id).best_secs) == (kept.number, 0.01)


def test_a_budget_that_grows_in_the_finish_is_not_overlooked(database: Database) -> None:
    job_id = submit(database)
    measurer = Interrupting(TRIALS + 3, lambda: act(database, "change", job_id, max_trials=30))
    coordinator = Coordinator(database, measurer)
    coordinator.run_one()
    assert read(database, job_id).state is JobState.QUEUED
    with database.read() as session:
        assert finals.of_job(session, job_id), "what was compared is kept"
    coordinator.run_one()
    job = read(database, job_id)
    assert (job.state, job.num_measured) == (JobState.SUCCEEDED, 30)


def test_a_confirmed_best_waits_for_the_finish_of_another_job(database: Database) -> None:
    for _ in range(2):
        submit(database)
    Coordinator(database, Slower(cost)).run_one()
    with database.read() as session:
        second, first = jobs.newest(session, limit=2)
    before = find_best(database, first.workload_key, first.target)
    assert (before.kind, before.job_id) == ("confirmed", first.id)
    assert before.provisional_secs is not None
    assert before.run_secs == pytest.approx(1.1 * before.provisional_secs)
    seen: list[tuple[UUID, str | None]] = []

    class Watching(MemoryMeasurer):
        def measure(
            self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
        ) -> Iterator[tuple[int, Measurement]]:
            best = find_best(database, first.workload_key, first.target)
            seen.append((best.job_id, best.kind))
            yield from super().measure(task, candidates, incumbent_secs)

    # Its samples are shorter than the confirmed median, but not by more than luck explains.
    Coordinator(database, Watching(lambda c: 0.95 * cost(c))).run_one()
    assert set(seen) == {(first.id, "confirmed")}
    after = find_best(database, first.workload_key, first.target)
    assert (after.job_id, after.kind) == (second.id, "confirmed")


class Slower(MemoryMeasurer):
    """Times every candidate a tenth slower when they are compared."""

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for measured in super().compare(task, candidates, num_rounds, seed):
            yield [Measurement((1.1 * m.best_secs,)) for m in measured]


def test_every_view_of_a_job_tells_the_same_times(database: Database) -> None:
    job_id = submit(database)
    Coordinator(database, Slower(lambda c: cost(c) / 100)).run_one()
    job = read(database, job_id)
    assert job.best_number is not None
    assert job.default_secs is not None
    best = find_best(database, job.workload_key, job.target)
    with database.read() as session:
        listed = list_schedules(session, SchedulesQuery()).items[0]
        by_trial = list_trials(session, job_id, TrialsQuery(limit=200)).items
        curve = Plots().curve(session, jobs.get(session, job_id), 1000)
    kept, default = (by_trial[number] for number in (job.best_number, 0))
    assert kept.final is not None
    assert default.final is not None
    assert [t.number for t in by_trial if t.final and t.final.outcome == "kept"] == [kept.number]
    confirmed = (kept.final.run_secs, kept.final.interval)
    assert confirmed == (job.best_secs, job.best_interval)
    for view in (best, listed):
        assert (view.run_secs, view.interval) == confirmed
        assert view.provisional_secs == kept.provisional_secs == job.best_provisional_secs
        assert (view.default_secs, view.default_interval) == (
            job.default_secs,
            job.default_interval,
        )
        assert (view.speedup, view.speedup_kind) == (job.speedup, "confirmed")
    assert (default.final.run_secs, default.final.outcome) == (job.default_secs, "slower")
    assert job.default_secs == pytest.approx(1.1 * (job.default_provisional_secs or 0))
    shortest = min(t.provisional_secs for t in by_trial if t.provisional_secs)
    assert curve.best_secs[-1] == job.provisional_secs == shortest
    assert job.best_secs == pytest.approx(1.1 * (kept.provisional_secs or 0))


def test_a_sample_after_the_finish_does_not_undo_what_was_confirmed(database: Database) -> None:
    job_id = submit(database)
    Coordinator(database, Slower(cost)).run_one()
    before = read(database, job_id)
    with database.write() as session:
        row = jobs.get(session, job_id)
        row.state = JobState.RUNNING
        trial = trials.of_job(session, job_id)[-1]
        task = Task(
            parse(session.get_one(WorkloadRow, row.workload_key).script), Target(row.target)
        )
    lucky = MeasuredTrial(
        trial.number + 1,
        Candidate("lucky", Trace()),
        Measurement((0.99 * (before.provisional_secs or 0),)),
    )
    with database.write() as session:
        session.execute(update(TrialRow).where(TrialRow.number == 0).values(candidate_key="x"))
    SqlStore(database).add(str(job_id), task, [lucky])
    after = read(database, job_id)
    assert (after.best_secs, after.best_interval) == (before.best_secs, before.best_interval)
    assert after.provisional_secs == lucky.best_secs
