"""Errors of jobs: they delay and end the job that they belong to, and no other."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from service.coordinator.coordinator import Coordinator
from service.jobs.groups import submit_group
from service.store.database.database import Database
from service.store.jobs import blame
from service.wire.models import JobState
from service.wire.requests import GroupCreate, GroupTask, Strategy, Workload
from tests.integration.service.driving import cost, read, submit
from tests.service_fixtures import let_time_pass
from tuner.candidate import Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.search.make import make_strategy
from tuner.task import Task

BROKEN_SEED = 7
BROKEN_PROGRAM = "matmul:16,32,64"
Break = Callable[[Callable[[Task, int], bool], Exception], None]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses that coordinators make, which take no time."""
    secs: list[float] = []

    class Recorded(Event):
        def wait(self, timeout: float | None = None) -> bool:
            secs.append(timeout or 0.0)
            return self.is_set()

    monkeypatch.setattr("service.coordinator.coordinator.Event", Recorded)
    return secs


@pytest.fixture
def break_spaces(monkeypatch: pytest.MonkeyPatch) -> Break:
    """Return a function that makes the design spaces of some jobs raise an error."""

    def break_them(is_broken: Callable[[Task, int], bool], error: Exception) -> None:
        def make(name: str, task: Task, seed: int, *more: Any) -> Any:
            if is_broken(task, seed):
                raise error.with_traceback(None)
            return make_strategy(name, task, seed, *more)

        monkeypatch.setattr("service.coordinator.job_runner.make_strategy", make)

    return break_them


def test_jobs_that_cannot_be_prepared_delay_no_other(
    database: Database, pauses: list[float], break_spaces: Break
) -> None:
    break_spaces(lambda _, seed: seed == BROKEN_SEED, IndexError("list index out of range"))
    broken = [submit(database, seed=BROKEN_SEED) for _ in range(6)]
    good = submit(database)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    while coordinator.run_one():
        assert pauses == []
    assert read(database, good).state is JobState.SUCCEEDED
    assert {read(database, job_id).state for job_id in broken} == {JobState.FAILED}


def test_a_job_that_cannot_be_prepared_is_tried_twice(
    database: Database, pauses: list[float], break_spaces: Break
) -> None:
    break_spaces(lambda _, seed: seed == BROKEN_SEED, IndexError("list index out of range"))
    job_id = submit(database, seed=BROKEN_SEED)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    assert coordinator.run_one()
    assert read(database, job_id).state is JobState.QUEUED
    assert coordinator.run_one()
    job = read(database, job_id)
    assert job.state is JobState.FAILED
    assert job.error == "internal error: IndexError: list index out of range"
    assert pauses == []


def test_a_job_of_a_group_that_cannot_be_prepared_fails_alone(
    database: Database, pauses: list[float], break_spaces: Break
) -> None:
    specs = ("matmul:32,32,32", BROKEN_PROGRAM)
    tasks = tuple(GroupTask(workload=Workload(operator=spec)) for spec in specs)
    request = GroupCreate(tasks=tasks, max_trials=48, warm_start=False, strategy=Strategy.RANDOM)
    good, broken = submit_group(database, request)[0].jobs
    break_spaces(lambda task, _: task.workload_key == broken.workload_key, IndexError("a rule"))
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    for _ in range(blame.MAX_PREPARATIONS + 1):
        assert coordinator.run_one()
    assert read(database, broken.id).state is JobState.FAILED
    assert read(database, good.id).state is JobState.SUCCEEDED
    assert pauses == []


def test_a_database_that_is_away_while_a_job_is_prepared_makes_the_coordinator_wait(
    database: Database, pauses: list[float], break_spaces: Break
) -> None:
    break_spaces(lambda *_: True, ConnectionError("the database is away"))
    job_id = submit(database)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    for _ in range(4):
        assert coordinator.run_one()
        let_time_pass(database)
    assert read(database, job_id).state is JobState.QUEUED
    assert pauses == [0.5, 1.0, 2.0, 4.0]


def test_an_error_of_a_measurer_that_a_job_causes_delays_no_other(
    database: Database, pauses: list[float]
) -> None:
    def break_it(_: Candidate) -> float:
        raise AssertionError("a bug")

    submit(database)
    coordinator = Coordinator(database, MemoryMeasurer(break_it))
    while coordinator.run_one():
        let_time_pass(database)
    assert pauses == []
