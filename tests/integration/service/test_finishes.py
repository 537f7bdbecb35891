"""The end of a job: what it measured best is compared, and one is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler.runtime.measurement import Measurement
from loopwright.models import JobState
from service.coordinator import Coordinator
from service.schedules import find_best
from service.store import events, finals, jobs
from service.store.database import Database
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
    job_id = submit(database, trials=3)
    drive(database)
    with database.read() as session:
        kept = next(row for row in finals.of_job(session, job_id) if row.outcome == "kept")
    act(database, "change", job_id, trials=96)
    drive(database, Sober({keys(database, job_id)[kept.number]}))
    with database.read() as session:
        last = next(row for row in finals.of_job(session, job_id) if row.outcome == "kept")
    assert (last.number, read(database, job_id).best_secs) == (kept.number, 0.01)


def test_a_budget_that_grows_in_the_finish_is_not_overlooked(database: Database) -> None:
    job_id = submit(database)
    measurer = Interrupting(TRIALS + 3, lambda: act(database, "change", job_id, trials=30))
    coordinator = Coordinator(database, measurer)
    coordinator.run_one()
    assert read(database, job_id).state is JobState.QUEUED
    with database.read() as session:
        assert finals.of_job(session, job_id), "what was compared is kept"
    coordinator.run_one()
    job = read(database, job_id)
    assert (job.state, job.num_measured) == (JobState.SUCCEEDED, 30)
