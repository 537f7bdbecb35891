"""Jobs with time windows, by a clock of the tests."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from service.coordinator.coordinator import Coordinator
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from service.wire.models import JobState
from tests.integration.service.driving import Interrupting, act, cost, read, rows, submit
from tests.service_fixtures import problem
from tuner.measurer.memory import MemoryMeasurer

NIGHT = "22:00-06:00 UTC"


class Clock:
    """A clock that the test sets."""

    def __init__(self, hour: int) -> None:
        self.hour = hour

    def __call__(self) -> datetime:
        return datetime(2026, 1, 15, self.hour, tzinfo=UTC)


@pytest.mark.on_both_databases
def test_a_job_waits_for_its_window_and_others_do_not(database: Database) -> None:
    clock = Clock(12)
    nightly, other = submit(database, window="22:00-06:00"), submit(database)
    coordinator = Coordinator(database, MemoryMeasurer(cost), clock=clock)
    assert (coordinator.run_one(), coordinator.run_one()) == (True, False)
    assert read(database, other).state is JobState.SUCCEEDED
    assert (read(database, nightly).state, read(database, nightly).window) == ("queued", NIGHT)
    clock.hour = 23
    assert coordinator.run_one()
    assert read(database, nightly).state is JobState.SUCCEEDED


def test_a_running_job_returns_to_the_queue_when_its_window_closes(database: Database) -> None:
    clock = Clock(5)

    def close() -> None:
        clock.hour = 6

    job = submit(database, window=NIGHT)
    coordinator = Coordinator(database, Interrupting(20, close), clock=clock)
    assert (coordinator.run_one(), coordinator.run_one()) == (True, False)
    assert read(database, job).state is JobState.QUEUED
    num_measured = len(rows(database, job))
    assert 0 < num_measured < 24
    clock.hour = 0
    assert coordinator.run_one()
    assert read(database, job).state is JobState.SUCCEEDED
    assert len(rows(database, job)) == 24


def test_a_waiting_job_is_cancelled_at_once(database: Database) -> None:
    job = submit(database, window=NIGHT)
    assert act(database, "cancel", job) is JobState.CANCELLED


def test_a_window_is_changed_and_removed_over_http(database: Database) -> None:
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        body = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8, "window": NIGHT}
        job = client.post("/jobs", json=body).json()["id"]
        changed = client.patch(f"/jobs/{job}", json={"window": "01:00-02:00 Asia/Tokyo"}).json()
        assert changed["window"] == "01:00-02:00 Asia/Tokyo"
        problem(client.patch(f"/jobs/{job}", json={"window": "1-2"}), 422)
        problem(client.post("/jobs", json={**body, "window": "01:00-02:00 Nowhere"}), 422)
        assert client.patch(f"/jobs/{job}", json={"window": None}).json()["window"] is None
