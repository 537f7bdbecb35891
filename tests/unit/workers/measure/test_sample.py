import time
from collections.abc import Callable

import pytest

from workers.measure.sample import NUM_LONG_SAMPLES, NUM_SAMPLES, sample_secs


class Kernel:
    """Costs what it is told, by a clock that only it moves."""

    def __init__(self, secs: float) -> None:
        self.secs = secs
        self.now = 0.0
        self.runs = 0

    def run(self) -> None:
        self.now += self.secs
        self.runs += 1

    def time_calls(self, run: Callable[[], object], num_threads: int, calls: int) -> float:
        start = self.now
        for _ in range(calls):
            run()
        return (self.now - start) / calls


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Kernel]:
    def make(secs: float) -> Kernel:
        made = Kernel(secs)
        monkeypatch.setattr("workers.measure.sample.time_calls", made.time_calls)
        monkeypatch.setattr("compiler.runtime.time_calls.time_calls", made.time_calls)
        return made

    return make


def test_a_good_kernel_is_sampled_five_times(kernel: Callable[[float], Kernel]) -> None:
    made = kernel(500e-6)
    assert sample_secs(made.run, 1, 500e-6, 500e-6) == pytest.approx([500e-6] * NUM_SAMPLES)


def test_a_long_kernel_is_sampled_three_times(kernel: Callable[[float], Kernel]) -> None:
    made = kernel(5e-3)
    assert sample_secs(made.run, 1, 5e-3, 5e-3) == pytest.approx([5e-3] * NUM_LONG_SAMPLES)
    assert made.runs == NUM_LONG_SAMPLES


def test_a_sample_of_a_short_kernel_lasts_fifty_microseconds(
    kernel: Callable[[float], Kernel],
) -> None:
    made = kernel(1e-6)
    assert sample_secs(made.run, 1, 1e-6, None) == pytest.approx([1e-6] * NUM_SAMPLES)
    assert made.now >= NUM_SAMPLES * 50e-6


def test_a_loser_is_not_run_again(kernel: Callable[[float], Kernel]) -> None:
    made = kernel(81e-3)
    assert sample_secs(made.run, 1, 81e-3, 50e-3) == (81e-3,)
    assert made.runs == 0


def test_what_may_not_win_is_sampled_twice(kernel: Callable[[float], Kernel]) -> None:
    made = kernel(6e-3)
    assert sample_secs(made.run, 1, 6e-3, 5e-3) == pytest.approx([6e-3] * 2)
    near = kernel(5.2e-3)
    assert len(sample_secs(near.run, 1, 6e-3, 5e-3)) == NUM_LONG_SAMPLES
    short = kernel(550e-6)
    assert len(sample_secs(short.run, 1, 600e-6, 500e-6)) == NUM_SAMPLES


def test_a_kernel_that_was_interrupted_once_gets_another_chance(
    kernel: Callable[[float], Kernel],
) -> None:
    made = kernel(5e-3)
    assert sample_secs(made.run, 1, 15e-3, 5e-3) == pytest.approx([5e-3] * NUM_LONG_SAMPLES)
    loser = kernel(9e-3)
    assert sample_secs(loser.run, 1, 9e-3, 5e-3) == pytest.approx([9e-3])
    assert loser.runs == 1


def test_a_short_kernel_that_was_cold_gets_another_chance(
    kernel: Callable[[float], Kernel],
) -> None:
    made = kernel(100e-6)
    assert len(sample_secs(made.run, 1, 300e-6, 100e-6)) == NUM_SAMPLES
    assert len(sample_secs(made.run, 1, 300e-6, 50e-6)) == 1


@pytest.mark.parametrize("secs", [1e-4, 1e-3, 0.03, 0.08, 0.124, 0.125, 1.0, 20.0])
@pytest.mark.parametrize("incumbent_secs", [None, 1e-3, 1.0])
def test_no_candidate_is_timed_for_longer_than_a_quarter_of_a_second(
    kernel: Callable[[float], Kernel], secs: float, incumbent_secs: float | None
) -> None:
    made = kernel(secs)
    samples = sample_secs(made.run, 1, secs, incumbent_secs)
    assert samples
    assert all(s > 0 for s in samples)
    assert made.now <= 0.25


def test_real_samples_are_about_right() -> None:
    samples = sample_secs(lambda: time.sleep(1e-3), 2, 1e-3, None)
    assert len(samples) == 2 * NUM_SAMPLES
    assert min(samples) >= 1e-3


def test_a_kernel_of_several_threads_has_three_samples_to_lose_by(
    kernel: Callable[[float], Kernel],
) -> None:
    loser = kernel(9e-3)
    assert sample_secs(loser.run, 2, 9e-3, 5e-3) == pytest.approx([9e-3] * 3)
    recovers = kernel(5e-3)

    def run() -> None:
        recovers.run()
        recovers.now += 4e-3 if recovers.runs < 3 else 0

    assert len(sample_secs(run, 2, 9e-3, 5e-3)) == 2 * NUM_SAMPLES
