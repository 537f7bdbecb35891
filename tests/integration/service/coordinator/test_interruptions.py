"""A coordinator that is disturbed: stopped, robbed, or left by its workers."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from service.common.owner import Owner
from service.coordinator.coordinator import Coordinator
from service.store.database.database import Database
from service.store.jobs import blame, claims, controls, jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from service.wire.requests import Strategy
from tests.integration.service.driving import (
    TRIALS,
    Interrupting,
    Stuck,
    cost,
    read,
    rows,
    submit,
)
from tests.patience import PATIENCE_SECS
from tests.service_fixtures import let_time_pass
from tuner.candidate import Candidate
from tuner.measurer.memory import MemoryMeasurer
from workers.engine.engine import EngineStartError, NoWorkerError


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
    monkeypatch.setattr("service.coordinator.coordinator._MAX_BACKOFF_SECS", 0.0)
    job_id = submit(database)

    def break_it(_: Candidate) -> float:
        raise AssertionError("a bug")

    coordinator = Coordinator(database, MemoryMeasurer(break_it))
    for _ in range(blame.MAX_CRASHES):
        assert coordinator.run_one()
        let_time_pass(database)
    assert not coordinator.run_one()
    job = read(database, job_id)
    assert job.state is JobState.FAILED
    assert job.error == "internal error: AssertionError: a bug"


@pytest.mark.parametrize("error", [ConnectionError("gone"), EngineStartError("no memory")])
def test_a_service_that_is_broken_fails_no_job(
    database: Database, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("service.coordinator.coordinator._MAX_BACKOFF_SECS", 0.0)
    job_id = submit(database)
    is_broken = [True]

    def break_it(candidate: Candidate) -> float:
        if is_broken[0]:
            raise error
        return cost(candidate)

    coordinator = Coordinator(database, MemoryMeasurer(break_it))
    for _ in range(blame.MAX_CRASHES + 1):
        assert coordinator.run_one()
        assert read(database, job_id).state is JobState.QUEUED
        let_time_pass(database)
    is_broken[0] = False
    assert coordinator.run_one()
    assert read(database, job_id).state is JobState.SUCCEEDED


def test_a_job_that_came_to_nothing_waits_for_proof_that_the_host_is_well(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.coordinator.coordinator._MAX_BACKOFF_SECS", 0.0)
    job_id = submit(database)
    proofs = iter([OSError("no memory"), ValueError("no compiler"), None])
    measured: list[Candidate] = []

    def prove() -> None:
        if (error := next(proofs)) is not None:
            raise error

    def measure(candidate: Candidate) -> float:
        measured.append(candidate)
        if len(measured) == 1:
            raise AssertionError("a bug")
        return cost(candidate)

    coordinator = Coordinator(database, MemoryMeasurer(measure), prove=prove)
    for _ in range(3):
        assert coordinator.run_one()
        assert len(measured) == 1
        let_time_pass(database)
    assert coordinator.run_one()
    assert read(database, job_id).state is JobState.SUCCEEDED


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


def test_a_cancelled_job_does_not_wait_for_a_candidate_that_takes_long(database: Database) -> None:
    job_id = submit(database)
    stuck = Stuck(2)
    coordinator = Coordinator(database, stuck, interrupt=stuck.interrupted.set, patience_secs=0.2)
    coordinator.start()
    assert stuck.begun.wait(PATIENCE_SECS)
    with database.write() as session:
        controls.cancel(session, job_id)
    assert stuck.interrupted.wait(PATIENCE_SECS)
    assert coordinator.stop(10.0)
    job = read(database, job_id)
    assert (job.state, job.num_measured, job.error) == (JobState.CANCELLED, 2, None)


def test_a_job_whose_workers_end_while_it_stops_is_put_back(database: Database) -> None:
    job_id = submit(database)
    stuck = Stuck(2)
    coordinator = Coordinator(database, stuck)
    coordinator.start()
    assert stuck.begun.wait(PATIENCE_SECS)
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
    claim, calls = claims.claim_all, iter([ValueError("a row that cannot be read")])

    def fail_once(*args: Any, **more: Any) -> Any:
        if (error := next(calls, None)) is not None:
            raise error
        return claim(*args, **more)

    monkeypatch.setattr(claims, "claim_all", fail_once)
    job_id = submit(database)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    coordinator.start()
    deadline = time.monotonic() + PATIENCE_SECS
    while not read(database, job_id).state.is_final and time.monotonic() < deadline:
        coordinator.wake()
        time.sleep(0.05)
    assert coordinator.stop(10.0)
    assert read(database, job_id).state is JobState.SUCCEEDED


def test_a_database_that_does_not_respond_is_one_line_of_the_log(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_claimed = Event()
    refused = OperationalError("SELECT 1", {}, OSError("connection\nrefused"))
    failures = iter([refused, refused, ValueError("a bug")])

    def fail(*_: Any, **__: Any) -> list[list[JobRow]]:
        if (error := next(failures, None)) is not None:
            raise error
        is_claimed.set()
        return []

    submit(database)
    monkeypatch.setattr(claims, "claim_all", fail)
    monkeypatch.setattr("service.coordinator.coordinator._NO_CLAIM_SECS", 0.01)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    with capture_logs() as logs:
        coordinator.start()
        assert is_claimed.wait(PATIENCE_SECS)
        assert coordinator.stop(10.0)
    assert [(line["log_level"], line.get("reason")) for line in logs] == [
        ("warning", "connection refused"),
        ("warning", "connection refused"),
        ("error", None),
    ]
    assert ["exc_info" in line for line in logs] == [False, False, True]


def test_a_coordinator_that_lost_its_job_writes_nothing_more(database: Database) -> None:
    job_id = submit(database)
    thief, num_stored = Owner.here(), []

    def steal() -> None:
        with database.write() as session:
            row = jobs.get(session, job_id)
            row.lease_owner = str(thief)
            num_stored.append(row.num_measured)  # trials are stored while others are measured

    Coordinator(database, Interrupting(5, steal)).run_one()
    job = read(database, job_id)
    assert (job.state, [job.num_measured]) == (JobState.RUNNING, num_stored)


def test_a_lease_is_renewed_while_a_measurement_takes_long(database: Database) -> None:
    job_id = submit(database)
    claimed_by_another: list[bool] = []

    def take_long() -> None:
        time.sleep(1.5)
        with database.write() as session:
            claimed_by_another.append(claims.claim(session, Owner.here()) != [])

    Coordinator(database, Interrupting(2, take_long), lease_secs=0.6).run_one()
    assert claimed_by_another == [False]
    assert read(database, job_id).state is JobState.SUCCEEDED


def test_stopping_waits_no_longer_than_told(database: Database) -> None:
    submit(database)
    begun, go_on = Event(), Event()

    def hang() -> None:
        begun.set()
        go_on.wait(PATIENCE_SECS)

    coordinator = Coordinator(database, Interrupting(2, hang))
    coordinator.start()
    assert begun.wait(PATIENCE_SECS)
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
        jobs.get(session, job_id).crashes = blame.MAX_CRASHES - 1
    monkeypatch.setattr("service.coordinator.coordinator._MAX_BACKOFF_SECS", 0.0)
    Coordinator(database, Interrupting(1, refuse)).run_one()
    job = read(database, job_id)
    assert job.state is JobState.FAILED
    assert job.error is not None
    assert job.error.startswith("no worker serves cpu/other; start `loopwright worker`")
