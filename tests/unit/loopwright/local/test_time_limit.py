from __future__ import annotations

import pytest

from compiler import ops
from compiler.target.target import Target
from loopwright.local.time_limit import TimeLimit
from tuner.task import Task

TARGET = Target("cpu -mcpu=x86-64-v3 -num-cores=1")
SMALL, LARGE = Task(ops.matmul(16, 16, 16), TARGET), Task(ops.matmul(512, 512, 512), TARGET)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_without_a_limit_everything_is_affordable() -> None:
    limit = TimeLimit(None, 1, 0.0)
    assert (limit.search_secs(), limit.finish_secs(1)) == (None, None)
    assert limit.affords_default(LARGE)
    assert limit.affords_baseline()


def test_the_search_leaves_time_for_the_final_comparison() -> None:
    clock = Clock()
    limit = TimeLimit(1.0, 1, clock.now, clock)
    clock.now += 0.3
    assert limit.search_secs() == pytest.approx(0.4)
    clock.now += 0.4
    assert limit.finish_secs(1) == pytest.approx(0.3)
    assert not limit.affords_baseline()


def test_a_long_call_reserves_no_more_than_a_comparison_takes() -> None:
    clock = Clock()
    limit = TimeLimit(1000.0, 2, clock.now, clock)
    assert limit.search_secs() == pytest.approx(960.0)
    assert limit.finish_secs(2) == pytest.approx(500.0)
    assert limit.affords_baseline()


def test_times_are_never_negative() -> None:
    clock = Clock()
    limit = TimeLimit(1.0, 1, clock.now, clock)
    clock.now += 5.0
    assert limit.search_secs() == pytest.approx(0.0, abs=1e-6)
    assert limit.finish_secs(1) == 0.0


def test_a_slow_default_schedule_is_not_worth_a_short_time() -> None:
    clock = Clock()
    assert TimeLimit(1.0, 1, clock.now, clock).affords_default(SMALL)
    assert not TimeLimit(1.0, 1, clock.now, clock).affords_default(LARGE)  # half a second
    assert TimeLimit(20.0, 1, clock.now, clock).affords_default(LARGE)
    assert not TimeLimit(20.0, 2, clock.now, clock).affords_default(LARGE)
