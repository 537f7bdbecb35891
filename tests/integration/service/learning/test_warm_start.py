"""What jobs begin with, over a real database and design spaces."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import select

from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.user_cache import default_directory
from service.common.errors import LeaseLostError
from service.common.owner import Owner
from service.coordinator.coordinator import Coordinator
from service.jobs.jobs import submit_job
from service.learning.warm_start import warm_start_of_job
from service.store import cost_models, warm_starts
from service.store.cost_models import CostModelRow, NewCostModel
from service.store.database.database import Database, open_database
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow
from service.store.relatives import best_trials
from service.store.results.best_schedules import BestScheduleRow
from service.store.results.sql_store import SqlStore
from service.store.trials import trials
from service.wire.models import JobState
from service.wire.requests import JobCreate, Strategy, Workload
from tests.integration.service.driving import Interrupting, cost
from tests.integration.service.tuned import OWNER, SPEC, claimed, some_candidates, task_of, tuned
from tuner.candidate import default_candidate
from tuner.cost_model.training import Measured, MeasuredTask
from tuner.measurer.memory import MemoryMeasurer
from tuner.replay.base_model import base_model
from tuner.space.generate import design_space
from tuner.transfer.from_measurements import warm_start_of
from tuner.transfer.seed import BEST_OF_EACH
from tuner.trial import MeasuredTrial
from tuner.warm_start import COLD, WarmStart


@pytest.fixture
def relatives(database: Database) -> dict[str, UUID]:
    """Three shapes of the operator, the third the farthest, and one of another."""
    specs = ("matmul:96,96,48", "matmul:96,24,96", "matmul:12,12,96", "dense:96,96,96")
    return {spec: tuned(database, spec)[0] for spec in specs}


def test_the_best_of_the_nearest_comes_first(
    database: Database, relatives: dict[str, UUID]
) -> None:
    job, task = claimed(database), task_of(SPEC)
    found = warm_start_of_job(database, OWNER, job, task)
    with database.read() as session:
        rows = warm_starts.candidates(session, job.id)
    assert [c.key for c in found.candidates] == [row.candidate_key for row in rows]
    assert (rows[0].source_job_id, rows[0].source_number) == (relatives["matmul:96,96,48"], 1)
    assert rows[0].distance == 1.0
    assert {row.source_job_id for row in rows} == {
        job_id for spec, job_id in relatives.items() if spec.startswith("matmul")
    }
    assert {row.source_rank for row in rows} <= set(range(BEST_OF_EACH))
    space = design_space(task)
    assert all(space.point(candidate) is not None for candidate in found.candidates)


def test_what_a_finish_chose_goes_before_faster_samples(
    database: Database, relatives: dict[str, UUID]
) -> None:
    task = task_of("matmul:96,96,48")
    key = (task.workload_key, task.target.name)
    with database.write() as session:
        session.get_one(BestScheduleRow, key).trial_number = 3
    with database.read() as session:
        found = best_trials(session, *key, limit=3)
    assert [row.number for row in found] == [3, 1, 2]


def test_a_resumed_job_begins_with_the_same(database: Database, relatives: dict[str, UUID]) -> None:
    job, task = claimed(database), task_of(SPEC)
    first = warm_start_of_job(database, OWNER, job, task)
    assert first != COLD
    tuned(database, "matmul:96,96,95")
    assert warm_start_of_job(database, OWNER, job, task) == first
    assert warm_start_of_job(database, OWNER, claimed(database), task) != first


def test_the_newest_model_of_the_store_is_begun_with(
    database: Database, relatives: dict[str, UUID]
) -> None:
    task = task_of(SPEC)
    known = MeasuredTask(
        task, [Measured(c, 1.0 + n) for n, c in enumerate(some_candidates(design_space(task), 8))]
    )
    blob = warm_start_of(task, [known]).cost_model
    assert blob is not None
    with database.write() as session:
        new = NewCostModel(task.target.label, blob, trained_on=8)
        model_id = cost_models.add(session, new).id
    job = claimed(database)
    assert warm_start_of_job(database, OWNER, job, task).cost_model == blob
    with database.write() as session:
        cost_models.add(session, NewCostModel(task.target.label, blob, trained_on=9))
    with database.read() as session:
        kept = warm_starts.find(session, job.id)
        assert kept is not None
        assert kept.cost_model_id == model_id
    assert warm_start_of_job(database, OWNER, job, task).cost_model == blob
    with database.write() as session:
        session.get_one(CostModelRow, model_id).blob = b"of a version that is no longer read"
    resumed = warm_start_of_job(database, OWNER, job, task)
    assert (resumed.cost_model, bool(resumed.candidates)) == (None, True)


def test_without_relatives_a_job_begins_with_the_base_model(database: Database) -> None:
    tuned(database, "dense:96,96,96")
    job = claimed(database)
    base = base_model(default_directory())
    assert warm_start_of_job(database, OWNER, job, task_of(SPEC)) == WarmStart(base.model)
    tuned(database, "matmul:96,96,48")
    assert warm_start_of_job(database, OWNER, job, task_of(SPEC)) == WarmStart(base.model), (
        "that came later"
    )
    with database.read() as session:
        (kept,) = session.scalars(select(CostModelRow))
    assert (kept.job_id, kept.fingerprint) == (None, base.fingerprint)
    assert (kept.num_tasks, kept.trained_on) == (base.num_tasks, base.num_samples)


def test_a_search_that_asks_no_model_needs_none(database: Database) -> None:
    assert (
        warm_start_of_job(
            database, OWNER, claimed(database, strategy=Strategy.RANDOM), task_of(SPEC)
        )
        == COLD
    )


def test_a_job_may_want_to_begin_with_nothing(
    database: Database, relatives: dict[str, UUID]
) -> None:
    assert (
        warm_start_of_job(database, OWNER, claimed(database, warm_start=False), task_of(SPEC))
        == COLD
    )


def test_a_job_of_an_older_version_goes_on_as_it_began(
    database: Database, relatives: dict[str, UUID]
) -> None:
    job, task = claimed(database), task_of(SPEC)
    trial = MeasuredTrial(0, default_candidate(), Measurement((1.0,)))
    SqlStore(database).add(str(job.id), task, [trial])
    with database.read() as session:
        resumed = session.get_one(JobRow, job.id)
    assert warm_start_of_job(database, OWNER, resumed, task) == COLD


def test_who_lost_the_job_does_not_begin_it(database: Database) -> None:
    job = claimed(database)
    with pytest.raises(LeaseLostError):
        warm_start_of_job(database, Owner.here(), job, task_of(SPEC))
    with database.read() as session:
        assert warm_starts.find(session, job.id) is None


def test_what_became_of_a_relatives_best_is_known(
    database: Database, relatives: dict[str, UUID]
) -> None:
    job, task = claimed(database), task_of(SPEC)
    first, second, *_ = warm_start_of_job(database, OWNER, job, task).candidates
    trials = [
        MeasuredTrial(1, first, Measurement((0.5,))),
        MeasuredTrial(2, second, Measurement(error=ErrorKind.CRASH)),
        MeasuredTrial(3, default_candidate(), Measurement((0.25,))),
    ]
    SqlStore(database).add(str(job.id), task, trials)
    label = task.target.label
    with database.read() as session:
        rows = warm_starts.candidates(session, job.id)
        assert (rows[0].source_rank, rows[1].source_rank) == (0, 0)
        found = warm_starts.outcomes(session, label)
        assert [(o.distance, o.loss) for o in found] == [(1.0, 0.5), (rows[1].distance, 1.0)]
        key = session.get_one(JobRow, job.id).workload_key
        assert warm_starts.outcomes(session, label, key) == [], "no operator has that key"
        assert warm_starts.outcomes(session, "cpu/other") == []


def keys(database: Database, job_id: UUID) -> list[str]:
    with database.read() as session:
        return [row.candidate_key for row in trials.of_job(session, job_id)]


def test_a_warm_job_is_resumed_as_it_would_have_gone_on(
    database: Database, relatives: dict[str, UUID], tmp_path: Path
) -> None:
    with database.write() as session:
        for row in jobs.newest(session, limit=100):
            row.state = JobState.SUCCEEDED
    request = JobCreate(
        workload=Workload(operator=SPEC), target=task_of(SPEC).target.name, max_trials=40
    )
    job_id = submit_job(database, request)[0].id
    with (
        closing(database.engine.raw_connection()) as raw,
        closing(sqlite3.connect(tmp_path / "copy.db")) as copy,
    ):
        assert isinstance(raw.driver_connection, sqlite3.Connection)
        raw.driver_connection.backup(copy)
    undisturbed = open_database(f"sqlite:///{tmp_path / 'copy.db'}")
    Coordinator(undisturbed, MemoryMeasurer(cost)).run_one()

    first_measurer = Interrupting(6, lambda: first.stop(0.0))
    first = Coordinator(database, first_measurer)
    first.run_one()
    begun = keys(database, job_id)
    assert 0 < len(begun) < 40
    with database.read() as session:
        warm = [row.candidate_key for row in warm_starts.candidates(session, job_id)]
    assert begun[1:] == warm[: len(begun) - 1], "after the default"
    tuned(database, "matmul:96,96,97")
    with database.write() as session:
        for row in jobs.newest(session, limit=1):
            row.state = JobState.SUCCEEDED
    Coordinator(database, MemoryMeasurer(cost)).run_one()
    assert keys(database, job_id) == keys(undisturbed, job_id)
    undisturbed.close()
