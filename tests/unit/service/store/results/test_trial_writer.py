from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import event, select
from sqlalchemy.orm import Session

from compiler import ops
from compiler.ir.text.printer import script
from service.common.errors import LeaseLostError
from service.common.new_workload import NewWorkload
from service.common.owner import Owner
from service.store import targets, workloads
from service.store.database.database import Database
from service.store.jobs import claims, jobs
from service.store.jobs.jobs import JobRow, NewJob
from service.store.results import trial_writer
from service.store.results.add_trials import NewTrials, add_all
from service.store.results.trial_writer import TrialWriter
from service.store.trials.trials import TrialRow
from service.wire.requests import Strategy
from tests.contracts.measurement_store import make_trial
from tests.patience import PATIENCE_SECS
from tests.targets import level
from tuner.store.store import DuplicateTrialError
from tuner.task import Task

pytestmark = pytest.mark.on_both_databases

TASK = Task(ops.matmul(8, 8, 8), level(3))
ME = Owner.here()


def claimed(database: Database) -> UUID:
    """Return a new job that `ME` runs."""
    with database.write() as session:
        workload = NewWorkload(TASK.workload_key, "matmul", script(TASK.func), TASK.flops)
        workloads.ensure(session, workload)
        targets.ensure(session, TASK.target.name, TASK.target.label)
        new = NewJob(
            workload_key=TASK.workload_key,
            workload_name="matmul",
            target=TASK.target.name,
            max_trials=100,
            seed=0,
            strategy=Strategy.RANDOM,
        )
        jobs.submit(session, new)
    with database.write() as session:
        [row] = claims.claim(session, ME)
        return row.id


def new(job_id: UUID, number: int, secs: float = 0.5, owner: Owner = ME) -> NewTrials:
    return NewTrials(job_id, owner, TASK, [make_trial(TASK, number, secs)])


def numbers(database: Database, job_id: UUID) -> list[int]:
    with database.read() as session:
        query = select(TrialRow.number).where(TrialRow.job_id == job_id)
        return sorted(session.scalars(query))


@contextmanager
def holding(database: Database, writer: TrialWriter, trials: NewTrials) -> Iterator[None]:
    """Hold the commit of some trials while the body runs: the trials that come wait."""
    is_held, is_free = Event(), Event()

    def hold(_: object) -> None:
        is_held.set()
        assert is_free.wait(PATIENCE_SECS)

    event.listen(database.engine, "commit", hold)
    writer.put(trials)
    assert is_held.wait(PATIENCE_SECS)
    yield
    is_free.set()


def test_trials_are_stored_when_flush_returns(database: Database) -> None:
    job_id, writer = claimed(database), TrialWriter(database)
    for number in range(3):
        writer.put(new(job_id, number, 0.5 - number / 8))
    writer.flush(job_id)
    assert numbers(database, job_id) == [0, 1, 2]
    with database.read() as session:
        row = jobs.get(session, job_id)
    assert (row.num_measured, row.best_secs, row.default_secs) == (3, 0.25, 0.5)


def test_trials_that_wait_are_stored_by_few_statements(database: Database) -> None:
    ids, writer = [claimed(database) for _ in range(4)], TrialWriter(database)
    found: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        found.append(statement)

    with holding(database, writer, new(ids[0], 0)):
        for job_id in ids:
            for number in range(1, 5):
                writer.put(new(job_id, number, 1 / number))
        event.listen(database.engine, "before_cursor_execute", note)
    for job_id in ids:
        writer.flush(job_id)
    event.remove(database.engine, "before_cursor_execute", note)
    assert [numbers(database, job_id) for job_id in ids] == [[0, 1, 2, 3, 4], *[[1, 2, 3, 4]] * 3]
    assert len([text for text in found if text.startswith("INSERT INTO trials")]) == 1
    # Jobs whose first trials, or best times, change have further columns to write.
    assert len([text for text in found if text.startswith("UPDATE jobs")]) <= 3
    assert len([text for text in found if text.startswith("INSERT INTO events")]) == 1


def test_later_trials_are_stored_by_four_statements(database: Database) -> None:
    """One reads the jobs and their best schedules, and three write trials, jobs and events."""
    ids, writer = [claimed(database) for _ in range(3)], TrialWriter(database)
    writer._write([new(job_id, number) for job_id in ids for number in (0, 1)])
    found: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        found.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    assert not any(writer._write([new(job_id, 2, secs=2.0) for job_id in ids]))
    event.remove(database.engine, "before_cursor_execute", note)
    assert len([text for text in found if text.startswith("SELECT") and "FROM jobs" in text]) == 1
    assert not any("progress =" in text or "progress=" in text for text in found)
    begin = ("BEGIN", "SELECT pg_advisory_xact_lock")
    assert len([text for text in found if not text.startswith(begin)]) == 4
    with database.read() as session:
        row = jobs.get(session, ids[0])
    assert (row.num_measured, row.best_secs, row.provisional_secs) == (3, 0.5, 0.5)


def test_a_refused_set_leaves_the_others_of_its_transaction(database: Database) -> None:
    good, lost, twice = (claimed(database) for _ in range(3))
    writer = TrialWriter(database)
    with holding(database, writer, new(twice, 0)):
        writer.put(new(good, 0))
        writer.put(new(lost, 0, owner=Owner.here()))
        writer.put(new(twice, 0))
        writer.put(new(twice, 1))
    writer.flush(good)
    with pytest.raises(LeaseLostError):
        writer.flush(lost)
    with pytest.raises(DuplicateTrialError):
        writer.flush(twice)
    writer.flush(twice)  # an error is reported once
    assert [numbers(database, job_id) for job_id in (good, lost, twice)] == [[0], [], [0, 1]]


def test_a_set_that_breaks_a_transaction_is_refused_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = claimed(database), claimed(database)

    def breaking(session: Session, together: Sequence[NewTrials], *more: Any, **named: Any) -> Any:
        added = add_all(session, together, *more, **named)
        if any(trials.job_id == bad for trials in together):
            raise ValueError("of this set")
        return added

    monkeypatch.setattr(trial_writer, "add_all", breaking)
    writer = TrialWriter(database)
    assert writer._write([new(good, 0), new(bad, 0), new(good, 1)])[0::2] == [None, None]
    assert (numbers(database, good), numbers(database, bad)) == ([0, 1], [])


def test_nothing_is_stored_if_the_commit_fails_and_the_next_trials_report_it(
    database: Database,
) -> None:
    job_id, writer = claimed(database), TrialWriter(database)

    def fail(_: object) -> None:
        raise OSError("the disk is full")

    event.listen(database.engine, "commit", fail)
    writer.put(new(job_id, 0))
    with pytest.raises(OSError, match="the disk is full"):
        writer.flush(job_id)
    event.remove(database.engine, "commit", fail)
    assert numbers(database, job_id) == []
    writer.put(new(job_id, 0))
    writer.flush(job_id)
    with database.read() as session:
        assert session.get_one(JobRow, job_id).num_measured == 1
