"""Budgets that users change: jobs that ended go on, and jobs that run heed them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from service.coordinator.coordinator import Coordinator
from service.store import cost_models
from service.store.database.database import Database
from service.store.results import finals
from service.wire.models import JobState
from service.wire.requests import Strategy
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
from tuner.measurer.memory import MemoryMeasurer


@pytest.mark.parametrize("strategy", [Strategy.EVOLUTIONARY, Strategy.RANDOM])
def test_more_trials_are_those_of_a_job_that_had_them_from_the_start(
    database: Database, strategy: Strategy
) -> None:
    extended, whole = (submit(database, strategy=strategy, max_trials=n) for n in (TRIALS, 48))
    for _ in range(2):
        drive(database)
    kept = read(database, extended)
    act(database, "change", extended, max_trials=48)
    again = MemoryMeasurer(cost)
    drive(database, again)
    assert len(again.asked) == 48 - TRIALS
    assert keys(database, extended) == keys(database, whole)
    job = read(database, extended)
    assert (job.state, job.stop_reason, job.num_measured) == (JobState.SUCCEEDED, "budget", 48)
    assert kept.best_secs is not None
    assert job.best_secs is not None
    assert job.best_secs <= kept.best_secs
    with database.read() as session:
        finalists = finals.of_job(session, extended)
        of_each = [model.job_id for model in cost_models.newest_first(session, limit=9)]
    assert {row.finish for row in finalists} == {2}
    assert len(set(of_each)) == len(of_each), "what it learned first gives way"


def test_a_job_on_a_plateau_that_is_given_more_trials_goes_on(database: Database) -> None:
    job_id = submit(database, max_trials=64, plateau=1)
    drive(database, MemoryMeasurer(lambda _: 0.5))
    assert (read(database, job_id).stop_reason, read(database, job_id).num_measured) == (
        "plateau",
        16,
    )
    act(database, "change", job_id, max_trials=65)
    drive(database, MemoryMeasurer(lambda _: 0.5))
    assert read(database, job_id).num_measured == 32, "a round, and the plateau again"
    act(database, "change", job_id, plateau=None)
    drive(database, MemoryMeasurer(lambda _: 0.5))
    assert (read(database, job_id).stop_reason, read(database, job_id).num_measured) == (
        "budget",
        65,
    )


@pytest.mark.parametrize(
    ("changes", "num_measured", "reason"),
    [
        ({"max_trials": 40}, 40, "budget"),
        ({"max_trials": 20}, 20, "budget"),
        ({"max_trials": 5}, 17, "budget"),
        ({"plateau": 1}, 48, "plateau"),
        ({"max_secs": 1e-3}, 17, "time_budget"),
    ],
)
def test_a_running_job_heeds_its_new_budget(
    database: Database,
    until_seen: Callable[[], None],
    changes: dict[str, Any],
    num_measured: int,
    reason: str,
) -> None:
    job_id = submit(database, max_trials=64)

    def change() -> None:
        act(database, "change", job_id, **changes)
        until_seen()

    measurer = Interrupting(17, change)
    measurer.memory = MemoryMeasurer(lambda _: 0.5)
    Coordinator(database, measurer).run_one()
    job = read(database, job_id)
    assert (job.state, job.stop_reason) == (JobState.SUCCEEDED, reason)
    assert job.num_measured == num_measured
