"""Ratios of libraries to kernels, from rounds that are made up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from compiler.ir.analysis.flops import flops
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import ErrorKind, LibraryFacts, Measurement, Setting
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from tuner.candidate import Candidate, default_candidate
from tuner.finish.baseline import Baseline, measure_baselines
from tuner.task import Task
from tuner.trial import MeasuredTrial

TASK = Task(from_spec("matmul:8,8,8"), Target("cpu -num-cores=1"))
TRIAL = MeasuredTrial(0, default_candidate(), Measurement((1e-3,)))
FAILED = Measurement(error=ErrorKind.WRONG_RESULT, message="off by 7")

Round = tuple[Measurement, Mapping[str, Measurement]]


class Rounds:
    def __init__(self, rounds: Sequence[Round]) -> None:
        self.rounds = rounds
        self.num_read = 0

    def measure_baselines(self, *_: object) -> Iterator[Round]:
        for measured in self.rounds:
            self.num_read += 1
            yield measured


def beside(*ratios: float, secs: float = 1e-3) -> list[Round]:
    own = Measurement((secs, 2 * secs), worker="w", toolchain="ours")
    return [(own, {"numpy": Measurement((r * secs,), toolchain="NumPy 2")}) for r in ratios]


def compared(rounds: Sequence[Round]) -> list[Baseline]:
    return measure_baselines(TASK, TRIAL, Rounds(rounds))


def test_a_ratio_is_of_the_same_round() -> None:
    rounds = [r for n in range(10) for r in beside(1.25, secs=1e-3 * (1 + n))]
    (found,) = compared(rounds)
    assert found.speedup == pytest.approx(1.25)
    assert found.interval == pytest.approx((1.25, 1.25))
    assert (found.library, found.version, found.toolchain) == ("numpy", "NumPy 2", "ours")


def test_the_interval_holds_the_ratio_in_nearly_all_comparisons() -> None:
    rng = np.random.default_rng(0)
    num_held = 0
    for _ in range(400):
        (found,) = compared(beside(*(1.5 * np.exp(0.1 * rng.standard_t(2, 10))).tolist()))
        assert found.interval is not None
        low, high = found.interval
        assert low <= found.speedup <= high
        num_held += low <= 1.5 <= high
    assert num_held >= 0.93 * 400


def test_a_few_rounds_have_no_interval() -> None:
    (found,) = compared(beside(1.5, 1.6, 1.4))
    assert found.interval is None
    assert math.isclose(found.speedup, 1.5, rel_tol=0.05)


def test_a_library_that_fails_is_left_out_and_the_fastest_comes_first() -> None:
    (own, _), *_ = beside(1.0)
    libraries = {"slow": Measurement((3e-3,)), "wrong": FAILED, "fast": Measurement((2e-3,))}
    assert [b.library for b in compared([(own, libraries)] * 10)] == ["fast", "slow"]


def test_nothing_is_told_of_a_kernel_that_fails() -> None:
    rounds = beside(1.5, 1.5)
    assert compared([*rounds, (FAILED, rounds[0][1])]) == []


def with_peak(flops_a_sec: float, **facts: object) -> list[Round]:
    library = LibraryFacts(peak_flops=flops_a_sec, **facts)  # type: ignore[arg-type]
    own = Measurement((1e-3,), toolchain="ours")
    return [(own, {"numpy": Measurement((2e-3,), library=library)})] * 10


def test_rates_above_the_measured_peak_are_refused() -> None:
    # 1,024 operations in 1 ms and 2 ms: about 1.0 and 0.5 MFLOP/s.
    (found,) = compared(with_peak(2.048e6))
    assert found.share_of_peak == pytest.approx(0.25)
    assert len(compared(with_peak(1.0e6))) == 1, "the peak was measured as well"
    assert compared(with_peak(0.9e6)) == [], "the kernel's time can't be"
    assert compared(with_peak(0.4e6)) == [], "neither can the library's"


def test_a_kernel_may_save_operations_of_its_program() -> None:
    func = from_spec("conv2d:1,16,8,8,16,3,1,1")
    schedule = Schedule(func)
    schedule.winograd("conv2d_nchw", 4)
    task = Task(func, TASK.target)
    tiled, direct = (
        MeasuredTrial(0, Candidate("sketch", trace), Measurement((1e-3,)))
        for trace in (schedule.trace, Trace())
    )
    # In 1 ms the peak is 0.77 of the operations of the program, of which tiles need 0.63.
    for trial, num_libraries in ((tiled, 1), (direct, 0)):
        rounds = Rounds(with_peak(0.77 * 1e3 * flops(func)))
        assert len(measure_baselines(task, trial, rounds)) == num_libraries


def test_how_a_library_ran_is_told() -> None:
    tried = (Setting("1 thread", "Haswell", 3e-3), Setting("2 threads", "Haswell", 2e-3))
    (found,) = compared(
        with_peak(1e9, kernel_set="Haswell", setting="2 threads", tried=tried, is_below_cpu=True)
    )
    assert (found.kernel_set, found.setting, found.tried) == ("Haswell", "2 threads", tried)
    assert found.is_below_cpu


def test_it_ends_when_it_should_stop() -> None:
    rounds = Rounds(beside(*[1.5] * 10))
    assert measure_baselines(TASK, TRIAL, rounds, should_stop=lambda: rounds.num_read == 3) == []
    assert rounds.num_read == 3
