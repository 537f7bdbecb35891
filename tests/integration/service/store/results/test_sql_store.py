"""The SQLite store against the contract of measurement stores, and what it adds to it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from sqlalchemy import event, select

from compiler.ir.text.printer import script
from compiler.runtime.measurement import ErrorKind
from service.common.errors import LeaseLostError
from service.common.new_workload import NewWorkload
from service.common.owner import Owner
from service.store import targets, workloads
from service.store.database.database import Database
from service.store.jobs import claims, events, jobs
from service.store.jobs.jobs import NewJob
from service.store.results.sql_store import SqlStore
from service.store.trials import trial_chunks, trials
from service.store.trials.trial_chunks import PackedTrialsRow
from service.store.trials.trial_columns import joined
from service.wire.models import EventKind
from service.wire.requests import Strategy
from tests.contracts.measurement_store import MeasurementStoreContract, make_trial
from tuner.store.store import DuplicateTrialError, MeasurementStore
from tuner.task import Task

pytestmark = pytest.mark.on_both_databases


class TestSqlStore(MeasurementStoreContract):
    @pytest.fixture
    def store(self, database: Database) -> Iterator[MeasurementStore]:
        self.database = database
        yield SqlStore(database)
        database.close()

    def new_job(self, store: MeasurementStore, task: Task, name: str) -> str:
        with self.database.write() as session:
            workload = NewWorkload(task.workload_key, "matmul", script(task.func), task.flops)
            workloads.ensure(session, workload)
            targets.ensure(session, task.target.name, task.target.label)
            job = NewJob(
                workload_key=task.workload_key,
                workload_name=name,
                target=task.target.name,
                max_trials=100,
                seed=0,
                strategy=Strategy.RANDOM,
            )
            return str(jobs.submit(session, job).id)

    def test_trials_are_packed_once_their_range_is_whole(
        self, store: MeasurementStore, task: Task, job: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(trial_chunks, "SIZE", 4)
        monkeypatch.setattr(trial_chunks, "LATE", 1)
        for number in (1, 0, 2, 5, 3, 4, 6, 7, 8):
            store.add(job, task, [make_trial(task, number, 0.25)])
        with self.database.read() as session:
            rows = session.scalars(select(PackedTrialsRow).order_by(PackedTrialsRow.first)).all()
            found = joined(trial_chunks.after(session, UUID(job)))
        assert [(row.job_id, row.first) for row in rows] == [(UUID(job), 0), (UUID(job), 4)]
        assert found.number.tolist() == list(range(9))
        assert found.best_secs.tolist() == [0.25] * 9

    def test_counters_change_with_the_trials(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        store.add(job, task, [make_trial(task, 1, 0.25), make_trial(task, 2, ErrorKind.TIMEOUT)])
        with self.database.read() as session:
            row = jobs.get(session, UUID(job))
        assert (row.num_measured, row.best_secs, row.default_secs) == (2, 0.25, None)
        store.add(job, task, [make_trial(task, 0, 0.5)])
        with self.database.read() as session:
            row = jobs.get(session, UUID(job))
        assert (row.num_measured, row.best_secs, row.default_secs) == (3, 0.25, 0.5)

    def test_the_row_of_a_job_is_written_once_for_a_trial(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        store.add(job, task, [make_trial(task, 0, 0.5), make_trial(task, 1, 0.375)])
        statements: list[str] = []

        def note(_: object, __: object, statement: str, *___: object) -> None:
            statements.append(statement)

        event.listen(self.database.engine, "before_cursor_execute", note)
        store.add(job, task, [make_trial(task, 2, 0.25)])
        event.remove(self.database.engine, "before_cursor_execute", note)
        assert len([text for text in statements if text.startswith("UPDATE jobs")]) == 1
        assert len(statements) <= 12  # PostgreSQL is also asked for its clock

    def test_a_refused_call_counts_nothing(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        store.add(job, task, [make_trial(task, 1, 0.25)])
        with pytest.raises(DuplicateTrialError):
            store.add(job, task, [make_trial(task, 0, 0.125), make_trial(task, 1, 0.25)])
        with self.database.read() as session:
            row = jobs.get(session, UUID(job))
            seen = events.after(session, UUID(job), 0)
        assert (row.num_measured, row.best_secs, row.default_secs) == (1, 0.25, None)
        assert [event.kind for event in seen] == [EventKind.STATE, EventKind.TRIALS]

    def test_trials_are_told_to_listeners(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        store.add(job, task, [make_trial(task, 0, 0.5), make_trial(task, 1, 0.25)])
        with self.database.read() as session:
            last = events.after(session, UUID(job), 0)[-1]
        assert last.kind == EventKind.TRIALS
        assert last.payload == {
            "num_measured": 2,
            "best_secs": 0.25,
            "best_kind": "provisional",
            "provisional_secs": 0.25,
            "default_secs": 0.5,
        }

    def test_only_the_owner_of_the_lease_adds(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        me, other = Owner.here(), Owner.here()
        with self.database.write() as session:
            claims.claim(session, me)
        SqlStore(self.database, me).add(job, task, [make_trial(task, 0, 0.5)])
        with pytest.raises(LeaseLostError):
            SqlStore(self.database, other).add(job, task, [make_trial(task, 1, 0.25)])
        assert [t.number for t in store.trials(job)] == [0]

    def test_failures_are_explained_by_kind(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        kinds = [ErrorKind.CRASH, ErrorKind.TIMEOUT, ErrorKind.TIMEOUT]
        store.add(job, task, [make_trial(task, n, kind) for n, kind in enumerate(kinds)])
        with self.database.read() as session:
            explained = trials.explain_failures(session, UUID(job))
        assert explained == (
            "none of 3 trials is correct: 2 timeout, 1 crash; trial 1, the first timeout: injected"
        )
