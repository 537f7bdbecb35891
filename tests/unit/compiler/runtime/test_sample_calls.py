import time
from collections.abc import Callable

import pytest

from compiler.runtime.sample_calls import NUM_LONG_SAMPLES, NUM_SAMPLES, sample_secs
from compiler.runtime.time_calls import time_calls


class Kernel:
    """Costs a given time, by a clock that nothing else moves."""

    def __init__(self, secs: float) -> None:
        self.secs = secs
        self.now = 0.0
        self.runs = 0

    def run(self) -> None:
        self.now += self.secs
        self.runs += 1

    def clock(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        start = self.now
        for _ in range(calls):
            run()
        return (self.now - start) / calls


def test_a_good_kernel_is_sampled_five_times() -> None:
    made = Kernel(500e-6)
    assert sample_secs(made.run, 1, 500e-6, 500e-6, made.clock) == pytest.approx(
        [500e-6] * NUM_SAMPLES
    )


def test_a_long_kernel_is_sampled_three_times() -> None:
    made = Kernel(5e-3)
    assert sample_secs(made.run, 1, 5e-3, 5e-3, made.clock) == pytest.approx(
        [5e-3] * NUM_LONG_SAMPLES
    )
    assert made.runs == NUM_LONG_SAMPLES


def test_a_sample_of_a_short_kernel_lasts_fifty_microseconds() -> None:
    made = Kernel(1e-6)
    assert sample_secs(made.run, 1, 1e-6, None, made.clock) == pytest.approx([1e-6] * NUM_SAMPLES)
    assert made.now >= NUM_SAMPLES * 50e-6


def test_a_loser_is_not_run_again() -> None:
    made = Kernel(81e-3)
    assert sample_secs(made.run, 1, 81e-3, 50e-3, made.clock) == (81e-3,)
    assert made.runs == 0


def test_what_may_not_win_is_sampled_twice() -> None:
    made = Kernel(6e-3)
    assert sample_secs(made.run, 1, 6e-3, 5e-3, made.clock) == pytest.approx([6e-3] * 2)
    near = Kernel(5.2e-3)
    assert len(sample_secs(near.run, 1, 6e-3, 5e-3, near.clock)) == NUM_LONG_SAMPLES
    short = Kernel(550e-6)
    assert len(sample_secs(short.run, 1, 600e-6, 500e-6, short.clock)) == NUM_SAMPLES


def test_a_kernel_that_was_interrupted_once_gets_another_chance() -> None:
    made = Kernel(5e-3)
    assert sample_secs(made.run, 1, 15e-3, 5e-3, made.clock) == pytest.approx(
        [5e-3] * NUM_LONG_SAMPLES
    )
    loser = Kernel(9e-3)
    assert sample_secs(loser.run, 1, 9e-3, 5e-3, loser.clock) == pytest.approx([9e-3])
    assert loser.runs == 1


def test_a_short_kernel_that_was_cold_gets_another_chance() -> None:
    made = Kernel(100e-6)
    assert len(sample_secs(made.run, 1, 300e-6, 100e-6, made.clock)) == NUM_SAMPLES
    assert len(sample_secs(made.run, 1, 300e-6, 50e-6, made.clock)) == 1


@pytest.mark.parametrize("secs", [1e-4, 1e-3, 0.03, 0.08, 0.124, 0.125, 1.0, 20.0])
@pytest.mark.parametrize("incumbent_secs", [None, 1e-3, 1.0])
def test_no_candidate_is_timed_for_longer_than_a_quarter_of_a_second(
    secs: float, incumbent_secs: float | None
) -> None:
    made = Kernel(secs)
    samples = sample_secs(made.run, 1, secs, incumbent_secs, made.clock)
    assert samples
    assert all(s > 0 for s in samples)
    assert made.now <= 0.25


def test_real_samples_are_about_right() -> None:
    samples = sample_secs(lambda: time.sleep(1e-3), 2, 1e-3, None, time_calls)
    assert len(samples) == 2 * NUM_SAMPLES
    assert min(samples) >= 1e-3


def test_a_kernel_of_several_threads_has_three_samples_to_lose_by() -> None:
    loser = Kernel(9e-3)
    assert sample_secs(loser.run, 2, 9e-3, 5e-3, loser.clock) == pytest.approx([9e-3] * 3)
    recovers = Kernel(5e-3)

    def run() -> None:
        recovers.run()
        recovers.now += 4e-3 if recovers.runs < 3 else 0

    assert len(sample_secs(run, 2, 9e-3, 5e-3, recovers.clock)) == 2 * NUM_SAMPLES
