"""What users do to jobs that are there: each transition, and what comes of it when it is driven."""

from __future__ import annotations

import time
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from compiler.runtime.measurement import ErrorKind, Measurement
from service.common.errors import ServiceConflictError
from service.coordinator.coordinator import Coordinator
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from service.store.jobs import events, jobs
from service.store.results import finals
from service.wire.models import JobState
from tests.integration.service.driving import (
    TRIALS,
    Interrupting,
    Stuck,
    act,
    cost,
    drive,
    keys,
    read,
    submit,
    wait_for_end,
)
from tests.patience import PATIENCE_SECS
from tuner.candidate import Candidate
from tuner.loop.budget import StopReason
from tuner.measurer.memory import MemoryMeasurer

QUEUED, RUNNING = JobState.QUEUED, JobState.RUNNING
SUCCEEDED, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


def put(database: Database, job_id: UUID, **columns: Any) -> None:
    with database.write() as session:
        row = jobs.get(session, job_id)
        for name, value in columns.items():
            setattr(row, name, value)


def ended(reason: StopReason, **more: Any) -> dict[str, Any]:
    return {"stop_reason": reason, "num_measured": 8, **more}


CANCELLING = {"cancel_requested": True, "num_measured": 8}
STOPPING = {"stop_requested": True, "num_measured": 8}

TRANSITIONS: list[tuple[str, JobState, dict[str, Any], JobState | str]] = [
    ("cancel", QUEUED, {}, CANCELLED),
    ("cancel", RUNNING, {}, RUNNING),
    ("cancel", RUNNING, STOPPING, RUNNING),
    ("cancel", SUCCEEDED, ended(StopReason.BUDGET), SUCCEEDED),
    ("cancel", FAILED, ended(StopReason.BUDGET), FAILED),
    ("cancel", CANCELLED, ended(StopReason.CANCELLED), CANCELLED),
    ("stop", QUEUED, {}, CANCELLED),
    ("stop", QUEUED, {"num_measured": 3}, QUEUED),
    ("stop", RUNNING, {}, RUNNING),
    ("stop", RUNNING, STOPPING, RUNNING),
    ("stop", RUNNING, CANCELLING, "is being cancelled"),
    ("stop", SUCCEEDED, ended(StopReason.BUDGET), SUCCEEDED),
    ("stop", CANCELLED, {"stop_reason": StopReason.STOPPED}, CANCELLED),
    ("stop", CANCELLED, ended(StopReason.CANCELLED), "has ended .cancelled"),
    ("stop", FAILED, ended(StopReason.BUDGET), "has ended .failed"),
    ("resume", QUEUED, {}, QUEUED),
    ("resume", RUNNING, {}, RUNNING),
    ("resume", RUNNING, CANCELLING, "is being cancelled"),
    ("resume", RUNNING, STOPPING, "is being stopped"),
    ("resume", CANCELLED, ended(StopReason.CANCELLED), QUEUED),
    ("resume", FAILED, {}, QUEUED),
    ("resume", SUCCEEDED, ended(StopReason.STOPPED), QUEUED),
    ("resume", SUCCEEDED, ended(StopReason.PLATEAU), "cannot be resumed"),
    ("resume", CANCELLED, {"num_measured": TRIALS}, f"has measured {TRIALS} of {TRIALS} trials"),
    ("resume", CANCELLED, {"max_secs": 2.0, "active_secs": 2.5}, "has used its 2 seconds"),
    ("change", QUEUED, {}, QUEUED),
    ("change", RUNNING, {}, RUNNING),
    ("change", RUNNING, CANCELLING, "is being cancelled"),
    ("change", RUNNING, STOPPING, "is being stopped"),
    ("change", SUCCEEDED, ended(StopReason.BUDGET), QUEUED),
    ("change", SUCCEEDED, ended(StopReason.PLATEAU), QUEUED),
    ("change", CANCELLED, ended(StopReason.CANCELLED), QUEUED),
    ("change", FAILED, ended(StopReason.BUDGET), QUEUED),
    ("change", SUCCEEDED, ended(StopReason.BUDGET, num_measured=99), "has measured 99 of 40"),
    ("change", SUCCEEDED, ended(StopReason.EXHAUSTED), "no candidates are left"),
]


@pytest.mark.parametrize(("name", "state", "columns", "expected"), TRANSITIONS)
def test_each_transition(
    database: Database,
    name: str,
    state: JobState,
    columns: dict[str, Any],
    expected: JobState | str,
) -> None:
    job_id = submit(database)
    put(database, job_id, state=state, **columns)
    changes = {"max_trials": 40} if name == "change" else {}
    if isinstance(expected, JobState):
        assert act(database, name, job_id, **changes) is expected
        job = read(database, job_id)
        assert (job.stop_reason is None) == (not expected.is_final)
        # Sent once more, by a client that did not hear the answer, it does no harm.
        assert act(database, name, job_id, **changes) in {expected, QUEUED}
        return
    before = read(database, job_id)
    with pytest.raises(ServiceConflictError, match=expected):
        act(database, name, job_id, **changes)
    assert read(database, job_id) == before


class Endless(MemoryMeasurer):
    """Takes its time with each candidate after the first few, so that it is interrupted."""

    def __init__(self) -> None:
        super().__init__(self._slowly)
        self.begun = Event()

    def _slowly(self, candidate: Candidate) -> float:
        if len(self.asked) > 16:
            self.begun.set()
            time.sleep(0.02)
        return cost(candidate)


def test_a_stopped_job_ends_with_the_best_of_what_it_measured(database: Database) -> None:
    job_id = submit(database, max_trials=20_000)
    measurer = Endless()
    coordinator = Coordinator(database, measurer)
    coordinator.start()
    assert measurer.begun.wait(PATIENCE_SECS)
    act(database, "stop", job_id)
    assert wait_for_end(database, job_id).state is SUCCEEDED
    assert coordinator.stop(30)
    job = read(database, job_id)
    assert (job.stop_reason, job.error) == ("stopped", None)
    assert 16 <= job.num_measured < 20_000
    assert job.best_interval is not None
    with database.read() as session:
        assert finals.of_job(session, job_id)


def test_a_stop_does_not_wait_for_a_candidate_that_takes_long(database: Database) -> None:
    job_id = submit(database)
    stuck = Stuck(3)
    coordinator = Coordinator(database, stuck, interrupt=stuck.interrupted.set, patience_secs=0.2)
    coordinator.start()
    assert stuck.begun.wait(PATIENCE_SECS)
    act(database, "stop", job_id)
    job = wait_for_end(database, job_id)
    assert coordinator.stop(30)
    assert (job.state, job.stop_reason, job.num_measured) == (SUCCEEDED, "stopped", 3)
    assert job.best_interval is not None


def test_a_stop_before_anything_ran_and_was_right_is_a_failure(database: Database) -> None:
    job_id = submit(database)
    crash = Measurement(error=ErrorKind.CRASH, message="SIGSEGV")
    measurer = Interrupting(3, lambda: first.stop(0.0))
    measurer.memory = MemoryMeasurer(lambda _: crash)
    first = Coordinator(database, measurer)
    first.run_one()
    assert act(database, "stop", job_id) is QUEUED
    drive(database)
    job = read(database, job_id)
    assert (job.state, job.num_measured, job.stop_reason) == (FAILED, 3, "stopped")
    assert job.error is not None
    assert "SIGSEGV" in job.error


def test_a_job_that_was_put_back_and_stopped_is_finished_first(database: Database) -> None:
    stopped = submit(database)
    first = Coordinator(database, Interrupting(5, lambda: first.stop(0.0)))
    first.run_one()
    submit(database, priority=10)
    act(database, "stop", stopped)
    measurer = MemoryMeasurer(cost)
    drive(database, measurer)
    assert measurer.asked == [], "it was stopped"
    job = read(database, stopped)
    assert (job.state, job.stop_reason, job.num_measured) == (SUCCEEDED, "stopped", 5)


def test_jobs_of_a_higher_priority_come_first(database: Database) -> None:
    low, first, second, high = (submit(database, priority=p) for p in (-1, 0, 0, 5))
    act(database, "change", low, priority=7)
    for job_id in (low, high, first, second):
        drive(database)
        assert read(database, job_id).state is SUCCEEDED


def test_a_resumed_job_goes_on_as_if_it_had_not_been_cancelled(database: Database) -> None:
    resumed, undisturbed = (submit(database) for _ in range(2))
    measurer = Interrupting(19, lambda: first.stop(0.0))
    first = Coordinator(database, measurer)
    first.run_one()
    act(database, "cancel", resumed)
    act(database, "resume", resumed)
    second = MemoryMeasurer(cost)
    drive(database, second)
    assert len(second.asked) == TRIALS - 19, "nothing is measured twice"
    drive(database)
    assert keys(database, resumed) == keys(database, undisturbed)
    assert read(database, resumed).state is SUCCEEDED


@pytest.mark.on_both_databases
def test_events_of_a_job_that_went_on_end_with_its_last_end(database: Database) -> None:
    job_id = submit(database, max_trials=3)
    drive(database)
    act(database, "change", job_id, max_trials=5)
    drive(database)
    with TestClient(create_app(Dependencies(database))) as client:
        text = client.get(f"/api/v1/jobs/{job_id}/events").text
    with database.read() as session:
        known = events.after(session, job_id, 0)
    assert [int(line[4:]) for line in text.splitlines() if line.startswith("id: ")] == [
        event.id for event in known
    ]
    states = [event.payload["state"] for event in known if event.kind == "state"]
    assert states == ["queued", "running", "succeeded"] * 2


def test_the_routes(database: Database) -> None:
    woken: list[int] = []
    parts = Dependencies(database, wake=lambda: woken.append(1))
    job_id = submit(database)
    with TestClient(create_app(parts), base_url="http://test/api/v1/jobs") as client:
        changed = client.patch(f"/{job_id}", json={"max_trials": 30, "priority": 3, "plateau": 9})
        assert changed.status_code == 200
        job = changed.json()
        assert (job["max_trials"], job["priority"], job["plateau"]) == (30, 3, 9)
        assert client.patch(f"/{job_id}", json={"plateau": None}).json()["plateau"] is None
        assert client.post(f"/{job_id}/cancel").json()["state"] == "cancelled"
        refused = client.post(f"/{job_id}/stop")
        assert refused.status_code == 409
        assert refused.headers["content-type"] == "application/problem+json"
        assert "resume it before you stop it" in refused.json()["detail"]
        assert client.post(f"/{job_id}/resume").json()["state"] == "queued"
        assert client.post(f"/{job_id}/stop").json()["stop_reason"] == "stopped"
        assert client.post(f"/{UUID(int=1)}/stop").status_code == 404
        for wrong in ({}, {"max_trials": 0}, {"max_trials": None}, {"seed": 1}, {"priority": 1001}):
            answer = client.patch(f"/{job_id}", json=wrong)
            assert answer.status_code == 422, wrong
    assert len(woken) == 5
