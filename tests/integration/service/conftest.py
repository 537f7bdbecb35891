"""What the tests of the service share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from service.store.jobs import controls
from service.store.jobs.controls import JobControls
from tests.patience import PATIENCE_SECS
from tests.service_fixtures import database as database
from tests.service_fixtures import database_file as database_file
from tests.service_fixtures import empty_database_file as empty_database_file
from tests.service_fixtures import plain_logs as plain_logs
from tests.service_fixtures import postgres as postgres
from tests.service_fixtures import pytest_generate_tests as pytest_generate_tests


@pytest.fixture
def until_seen(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what waits until a coordinator has looked at what users want."""
    looks = 0
    look = controls.of_jobs

    def counted(*args: Any) -> dict[UUID, JobControls]:
        nonlocal looks
        found = look(*args)
        looks += 1
        return found

    def wait() -> None:
        seen, deadline = looks, time.monotonic() + PATIENCE_SECS
        # The look that is under way may be older than the change.
        while looks < seen + 2:
            assert time.monotonic() < deadline, "no coordinator looks"
            time.sleep(0.01)

    monkeypatch.setattr(controls, "of_jobs", counted)
    monkeypatch.setattr("service.coordinator.pulse._LOOK_SECS", 0.02)
    return wait
