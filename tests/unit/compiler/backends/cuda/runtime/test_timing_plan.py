"""The decisions of timing on a GPU, which need none."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from compiler.backends.cuda.runtime.host_gpus import GpuState
from compiler.backends.cuda.runtime.timing_plan import (
    are_enough,
    at_full_clock,
    conditions,
    is_loser,
    rotation,
    spread,
)
from compiler.runtime.conditions import TimingConditions
from compiler.target.gpus import GPUS

L2 = GPUS["h200"].l2_bytes
PLENTY = 32 << 30
CALM = GpuState(1755, 640.0, 61, ("power cap",))
HOT = GpuState(1200, 690.0, 88, ("hardware thermal slowdown",))


@pytest.mark.parametrize("set_bytes", [1 << 20, 5 << 20, 60 << 20])
@pytest.mark.parametrize("secs", [2e-6, 7e-6, 19e-6])
def test_a_graph_lasts_a_millisecond_and_leaves_the_cache(set_bytes: int, secs: float) -> None:
    plan = rotation(set_bytes, L2, secs, PLENTY)
    assert plan.l2 == "cold"
    assert plan.num_sets * set_bytes >= 3 * L2
    assert plan.num_launches * secs >= 1e-3
    assert plan.num_launches % plan.num_sets == 0


def test_arrays_that_cannot_leave_the_cache_are_said_to_be_in_it() -> None:
    assert rotation(4096, L2, 2e-6, PLENTY).l2 == "warm"
    assert rotation(16 << 20, L2, 15e-6, free_bytes=40 << 20) == rotation(
        16 << 20, L2, 15e-6, free_bytes=32 << 20
    )
    assert rotation(16 << 20, L2, 15e-6, free_bytes=0).num_sets == 1


def test_the_sets_of_a_workload_do_not_depend_on_the_candidate() -> None:
    assert len({rotation(2 << 20, L2, secs, PLENTY).num_sets for secs in (2e-6, 19e-6)}) == 1


def test_a_loser_is_three_times_slower_than_the_incumbent() -> None:
    assert is_loser(3.1e-3, 1e-3)
    assert not is_loser(2.9e-3, 1e-3)
    assert not is_loser(1e3, None)
    assert not is_loser(6e-6, 1.5e-6)  # of which some microseconds are the start


def test_samples_are_enough_when_they_agree_or_time_is_up() -> None:
    assert not are_enough([1.0] * 9, 0.0)
    assert are_enough([1.0] * 10, 0.0)
    assert not are_enough([1.0, 1.2] * 5, 0.0)
    assert are_enough([1.0, 1.2] * 50, 0.0)
    assert not are_enough([1.0, 1.2], 5.0)
    assert are_enough([1.0, 1.2, 1.1], 0.11)


def test_the_spread_is_the_range_of_the_middle_half() -> None:
    samples = np.random.default_rng(0).normal(1.0, 0.1, 99).tolist()
    low, high = np.percentile(samples, [25, 75])
    assert spread(samples) == pytest.approx((high - low) / statistics.median(samples))
    assert spread([0.0, 0.0]) == 0.0


def sampled(states: list[GpuState | None]) -> tuple[int, GpuState | None, list[float]]:
    """Return the samples, numbered by attempt, that count with states in a row, and the pauses."""
    attempts, readings, pauses = iter(range(10)), iter(states), list[float]()
    number, state = at_full_clock(lambda: next(attempts), lambda: next(readings), pauses.append)
    return number, state, pauses


def test_throttled_samples_are_taken_again() -> None:
    assert sampled([CALM]) == (0, CALM, [])
    assert sampled([None]) == (0, None, [])
    number, state, pauses = sampled([HOT, CALM])
    assert (number, state, len(pauses)) == (1, CALM, 1)


def test_the_last_attempt_counts_and_says_that_the_gpu_was_throttled() -> None:
    number, state, _ = sampled([HOT, HOT, HOT])
    assert number == 2
    assert conditions("cold", state).slowed_by == ("hardware thermal slowdown",)


def test_conditions_say_what_is_known_of_the_gpu() -> None:
    assert conditions("cold", CALM) == TimingConditions("cold", 1755, 640.0, 61, ("power cap",))
    assert conditions("warm", None) == TimingConditions("warm")
