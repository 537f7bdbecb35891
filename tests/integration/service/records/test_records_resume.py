"""A job that had not ended where it was exported goes on where it was imported."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import func, select

from service.coordinator.coordinator import Coordinator
from service.store.database.database import Database, open_database
from service.store.jobs import groups
from service.store.trials.trials import TrialRow
from service.wire.models import JobState
from service.wire.requests import Strategy
from tests.integration.service.coordinator import test_groups
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
from tests.integration.service.recorded import get, put
from tests.patience import PATIENCE_SECS
from tuner.measurer.memory import MemoryMeasurer


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Database]:
    database = open_database(f"sqlite:///{tmp_path / 'elsewhere.db'}")
    yield database
    database.close()


def num_stored(database: Database) -> int:
    with database.read() as session:
        return session.scalar(select(func.count()).select_from(TrialRow)) or 0


def amid(database: Database, at: int) -> bytes:
    """Drive what waits, and return what is exported before its n-th measurement is kept."""
    files: list[bytes] = []
    num_before = num_stored(database)

    def export() -> None:
        deadline = time.monotonic() + PATIENCE_SECS
        while num_stored(database) < num_before + at - 1:  # they are stored by another thread
            assert time.monotonic() < deadline, "the trials are not stored"
            time.sleep(0.02)
        files.append(get(database))
        coordinator.stop(0.0)

    coordinator = Coordinator(database, Interrupting(at, export))
    coordinator.run_one()
    return files[0]


def go_on(database: Database, job_ids: list[UUID]) -> MemoryMeasurer:
    """Resume jobs, and return what drove them to their ends."""
    for job_id in job_ids:
        assert act(database, "resume", job_id) is JobState.QUEUED
    measurer = MemoryMeasurer(cost)
    while Coordinator(database, measurer).run_one():
        pass
    return measurer


@pytest.mark.parametrize("strategy", [Strategy.RANDOM, Strategy.EVOLUTIONARY])
def test_a_job_goes_on_elsewhere_as_if_it_had_not_moved(
    database: Database, elsewhere: Database, strategy: Strategy
) -> None:
    whole = submit(database, strategy=strategy)
    drive(database)
    job_id = submit(database, strategy=strategy)
    put(elsewhere, amid(database, 14))
    arrived = read(elsewhere, job_id)
    assert (arrived.state, arrived.num_measured) == (JobState.CANCELLED, 13)
    assert "resume it here" in str(arrived.error)
    known = keys(elsewhere, job_id)
    measurer = go_on(elsewhere, [job_id])
    assert read(elsewhere, job_id).state is JobState.SUCCEEDED
    assert keys(elsewhere, job_id) == keys(database, whole)
    assert len(measurer.asked) == TRIALS - 13
    assert not {candidate.key for candidate in measurer.asked} & set(known)


def test_a_group_goes_on_elsewhere_as_if_it_had_not_moved(
    database: Database, elsewhere: Database
) -> None:
    group = test_groups.submit(database)
    put(elsewhere, amid(database, 57))
    with elsewhere.read() as session:
        assert groups.trials_left(session, group.id) == test_groups.TOTAL - 56
    assert {job.state for job in test_groups.state(elsewhere, group).jobs} == {JobState.CANCELLED}
    measurer = go_on(elsewhere, [job.id for job in group.jobs])
    assert test_groups.keys(elsewhere, group) == test_groups.expected()
    assert len(measurer.asked) == test_groups.TOTAL - 56
    after = test_groups.state(elsewhere, group)
    assert {job.state for job in after.jobs} == {JobState.SUCCEEDED}
    assert [job.weight for job in after.jobs] == list(test_groups.WEIGHTS)
