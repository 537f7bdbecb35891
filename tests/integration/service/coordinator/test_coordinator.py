"""The coordinator over a real database and search, with measurements from a formula."""

from __future__ import annotations

import time
from typing import Any

import pytest
from sqlalchemy import select

from compiler.runtime.measurement import ErrorKind, Measurement
from service.coordinator.coordinator import Coordinator
from service.schedules.schedules import find_best
from service.store import cost_models
from service.store.cost_models import CostModelRow
from service.store.database.database import Database
from service.store.jobs import jobs
from service.wire.models import JobState
from service.wire.requests import Strategy
from tests.integration.service.driving import (
    TRIALS,
    Interrupting,
    cost,
    read,
    rows,
    submit,
)
from tests.patience import PATIENCE_SECS
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.measurer.memory import MemoryMeasurer


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


def test_no_job_is_claimed_while_workers_cannot_be_reached(database: Database) -> None:
    job_id = submit(database)
    served: list[str] | None = None
    coordinator = Coordinator(database, MemoryMeasurer(cost), serves=lambda: served)
    assert not coordinator.run_one()
    assert read(database, job_id).state is JobState.QUEUED
    served = []
    assert coordinator.run_one()
    assert read(database, job_id).state is JobState.SUCCEEDED


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
        f"none of {TRIALS} trials is correct: {TRIALS - 1} timeout, 1 wrong_result; "
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
        ({"plateau": 1, "max_trials": 99}, "plateau", 16),
        ({"max_secs": 1e-6}, "time_budget", 1),
        ({"rules": ["spatial_blocks"], "max_trials": 999}, "exhausted", None),
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
    job_id = submit(database, max_secs=600.0)
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


def test_the_thread_takes_jobs_as_they_come(database: Database) -> None:
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    coordinator.start()
    ids = [submit(database, seed=seed) for seed in range(2)]
    coordinator.wake()
    deadline = time.monotonic() + PATIENCE_SECS
    while not all(read(database, i).state.is_final for i in ids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert coordinator.is_running
    assert coordinator.stop(5.0)
    assert not coordinator.is_running
    assert [read(database, i).state for i in ids] == [JobState.SUCCEEDED] * 2
