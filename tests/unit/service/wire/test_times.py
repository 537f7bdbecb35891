from __future__ import annotations

import pytest

from service.wire.models import JobRead
from service.wire.times import LUCK, RunTime, TimeKind, holds_against, speed_up

CONFIRMED = RunTime(3.46, (3.28, 3.52), 2.80)
JOB = {
    "id": "00000000-0000-4000-8000-000000000001",
    "state": "succeeded",
    "workload_key": "k",
    "workload_name": "matmul",
    "target": "cpu",
    "max_trials": 2,
    "seed": 0,
    "strategy": "random",
    "num_measured": 2,
    "created_at": "2026-01-01T00:00:00Z",
    "started_at": None,
    "finished_at": None,
    "error": None,
}


def test_a_time_is_confirmed_if_it_has_an_interval() -> None:
    assert CONFIRMED.kind is TimeKind.CONFIRMED
    assert RunTime(2.8).kind is TimeKind.PROVISIONAL
    assert RunTime(None).kind is None


def test_a_time_of_an_emulated_target_is_an_estimate() -> None:
    emulated = "cuda -arch=sm_90a -gpu=h200 -emulated"
    assert RunTime(2.8, None, 2.8, emulated).kind is TimeKind.ESTIMATED
    assert RunTime(2.8, None, 2.8, "cuda -arch=sm_90a -gpu=h200").kind is TimeKind.PROVISIONAL
    times = {"best_secs": 2.0, "best_provisional_secs": 2.0, "default_secs": 8.0}
    times["default_provisional_secs"] = 8.0
    job = JobRead.model_validate({**JOB, **times, "target": emulated})
    assert (job.best_kind, job.default_kind, job.speedup_kind) == ("estimated",) * 3
    assert job.speedup == 4.0
    assert "2 s estimated" in str(job)


def test_a_speed_up_is_of_two_times_of_one_kind() -> None:
    assert speed_up(RunTime(34.6, (34.0, 35.0), 30.0), CONFIRMED) == (10.0, "confirmed")
    # The default was not measured again: the samples of the search are compared.
    assert speed_up(RunTime(28.0), CONFIRMED) == (28.0 / 2.8, "provisional")
    assert speed_up(RunTime(None), CONFIRMED) is None


@pytest.mark.parametrize(
    ("known", "other", "holds"),
    [
        (RunTime(2.0), RunTime(1.9), False),
        (RunTime(2.0), RunTime(2.0), True),
        (CONFIRMED, RunTime(3.4, (3.3, 3.5), 9.0), False),
        (CONFIRMED, RunTime(2.78), True),  # less than its median, and only a lucky sample
        (CONFIRMED, RunTime(2.8 / LUCK * 0.99), False),
        (RunTime(2.78), CONFIRMED, False),
        (RunTime(2.8 / LUCK * 0.99), CONFIRMED, True),
    ],
)
def test_a_confirmed_best_does_not_give_way_to_luck(
    known: RunTime, other: RunTime, *, holds: bool
) -> None:
    assert holds_against(known, other) is holds


def test_a_job_says_which_statistic_its_times_are() -> None:
    searching = JobRead.model_validate(
        {**JOB, "best_secs": 2.0, "best_provisional_secs": 2.0, "default_secs": 8.0}
    )
    assert (searching.best_kind, searching.default_kind) == ("provisional", "provisional")
    ended = searching.model_copy(
        update={"best_secs": 2.5, "best_interval": (2.4, 2.6), "default_provisional_secs": 8.0}
    )
    assert (ended.best_kind, ended.speedup, ended.speedup_kind) == ("confirmed", 4.0, "provisional")
    again = ended.model_copy(update={"default_secs": 9.0, "default_interval": (8.9, 9.2)})
    assert (again.speedup, again.speedup_kind) == (3.6, "confirmed")
    assert "best 2.5 s confirmed" in str(again)
    written = again.model_dump(mode="json")
    assert (written["best_kind"], written["speedup"]) == ("confirmed", 3.6)
    assert JobRead.model_validate(written) == again
