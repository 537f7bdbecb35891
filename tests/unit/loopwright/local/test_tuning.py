from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.host_device import HostDevice
from compiler.executor.machine import architecture
from compiler.runtime.measurement import ErrorKind, Measurement
from loopwright.local import tune_result, tuning
from tuner.finish import whole_space
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest

OPERATOR = "matmul:16,16,16"


class AnsweringRunner:
    """Stands in for the runner of children: the same answer for every candidate but the first."""

    first = Measurement(run_secs=(2.0,))
    others = Measurement(run_secs=(3.0, 1.0))

    def __init__(self) -> None:
        self.num_asked = 0

    @classmethod
    @contextmanager
    def kept(
        cls, device: HostDevice | None, functions: Collection[str], *, shares_builds: bool
    ) -> Iterator[Self]:
        assert device is None, "the CPU is no device"
        assert not functions, "no library is called"
        yield cls()

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        for index in reversed(range(len(request.traces))):
            is_first = self.num_asked == 0 and index == 0
            yield index, self.first if is_first else self.others
        self.num_asked += len(request.traces)

    def compare(self, request: CompareRequest) -> Iterator[list[Measurement]]:
        for _ in range(request.num_rounds):
            yield [self.others] * request.num_contestants


def test_tuning_measures_for_real_and_finds_a_right_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_BASELINES", "numpy")
    seen: list[int] = []
    result = lw.tune(
        OPERATOR, target="cpu -num-cores=1", max_trials=5, on_trial=lambda t: seen.append(t.number)
    )
    assert sorted(seen) == [trial.number for trial in result.trials] == [0, 1, 2, 3, 4]
    assert result.default is not None
    assert result.default.trace.instructions == ()
    assert result.stop_reason == "budget"
    assert result.best.interval is not None
    low, high = result.best.interval
    assert 0 < low <= result.best.run_secs <= high
    assert result.best.final is not None
    assert result.best.final.outcome == "kept"
    assert result.baseline is not None
    assert result.baseline.version.startswith("NumPy")
    assert result.baseline.speedup > 0
    a = np.arange(256, dtype="float32").reshape(16, 16)
    c = np.empty_like(a)
    result.build()(a, a, c)
    np.testing.assert_array_equal(c, a @ a)


def test_trials_come_in_order_and_the_earliest_of_equals_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    result = lw.tune(OPERATOR, max_trials=20)
    assert [trial.number for trial in result.trials] == list(range(20))
    assert result.default is not None
    assert (result.default.run_secs, result.best.run_secs, result.best.number) == (2.0, 1.0, 1)


@pytest.mark.parametrize(
    ("options", "reason", "num_trials"),
    [
        ({"max_secs": 1e-9}, "time_budget", 1),
        ({"plateau": 16}, "plateau", 32),
        ({"should_stop": lambda: True}, "cancelled", 0),
        ({"rules": ["spatial_blocks"]}, "exhausted", None),
    ],
)
def test_a_result_says_why_the_search_ended(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
    reason: str,
    num_trials: int | None,
) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    if num_trials == 0:
        with pytest.raises(LookupError, match="stopped before the first measurement"):
            lw.tune(OPERATOR, max_trials=99, **options)  # type: ignore[call-overload]
        return
    result = lw.tune(OPERATOR, max_trials=99, **options)  # type: ignore[call-overload]
    assert result.stop_reason == reason
    assert num_trials in (None, len(result.trials))


def test_a_short_call_leaves_out_a_slow_default_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    result = lw.tune("matmul:512,512,512", max_secs=1e-3, max_trials=4)
    assert result.trials[0].number > 0
    assert (result.default, result.speedup, result.default_time.secs) == (None, None, None)
    assert result.baseline is None
    assert "the default" not in repr(result)
    long = lw.tune("matmul:512,512,512", max_secs=1e3, max_trials=4)
    assert long.default is not None


def test_a_small_space_is_measured_whole_and_the_result_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    space = lw.design_space("relu:64,64")
    result = lw.tune("relu:64,64")
    assert result.whole_space is not None
    assert result.whole_space.num_schedules == space.num_schedules == len(result.trials) - 1
    assert result.whole_space.margin == 0.0  # all are equal
    assert f"best of all {space.num_schedules} schedules, at 95%" in repr(result)
    assert lw.tune("relu:64,64", max_trials=space.num_schedules).whole_space is None


def test_a_space_above_the_default_limit_is_measured_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    monkeypatch.setattr(tuning, "DEFAULT_TRIALS", 8)
    assert len(lw.tune("relu:64,64").trials) == 1 + lw.design_space("relu:64,64").num_schedules
    monkeypatch.setattr(whole_space, "WHOLE_SPACE", 8)
    assert len(lw.tune("relu:64,64").trials) == 8


def test_a_search_of_a_larger_space_says_how_far_it_may_be_from_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    result = lw.tune("matmul:512,512,512", max_trials=16)
    assert result.whole_space is None
    assert result.space_distance is not None
    assert (
        result.space_distance.num_schedules == lw.design_space("matmul:512,512,512").num_schedules
    )
    assert str(result.space_distance) in repr(result)
    cold = lw.tune("matmul:512,512,512", max_trials=16, warm_start=None)
    assert cold.space_distance is None


def test_a_search_that_is_stopped_keeps_its_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    seen: list[tune_result.Trial] = []
    result = lw.tune(OPERATOR, on_trial=seen.append, should_stop=lambda: len(seen) == 5)
    assert result.stop_reason == "cancelled"
    assert (len(result.trials), result.best.run_secs, result.best.interval) == (5, 1.0, None)


def test_without_one_right_trial_tuning_fails_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crash = Measurement(error=ErrorKind.CRASH, message="signal 11")
    monkeypatch.setattr(AnsweringRunner, "first", crash)
    monkeypatch.setattr(AnsweringRunner, "others", crash)
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    with pytest.raises(lw.JobFailedError, match=r"none of 3 trials .*: crash: signal 11"):
        lw.tune(OPERATOR, max_trials=3)


def test_a_workload_without_a_right_trial_costs_no_other_its_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class HalfBroken(AnsweringRunner):
        def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
            if "(16, 16)" in request.workload:
                yield from super().measure(request)
            else:
                crash = Measurement(error=ErrorKind.CRASH, message="signal 11")
                yield from ((index, crash) for index in range(len(request.traces)))

    monkeypatch.setattr(tuning, "kept_runner", HalfBroken.kept)
    with pytest.raises(lw.JobFailedError, match="of matmul is correct") as caught:
        lw.tune(["matmul:64,64,64", OPERATOR], max_trials=40)
    broken, right = caught.value.results
    assert not broken.best.measurement.ok
    assert right.best.run_secs == 1.0


@pytest.mark.parametrize(
    ("workload", "options", "kind"),
    [
        ("matmul:16", {}, lw.OperatorError),
        ("def f(): pass", {}, lw.ScriptError),
        (OPERATOR, {"target": "abacus"}, lw.TargetError),
        (OPERATOR, {"max_trials": 0}, ValueError),
        (OPERATOR, {"strategy": "luck"}, ValueError),
        (OPERATOR, {"rules": ["luck"]}, ValueError),
        (OPERATOR, {"max_secs": 0.0}, ValueError),
        (OPERATOR, {"max_secs": float("nan")}, ValueError),
        (OPERATOR, {"max_secs": "1"}, ValueError),
        ([], {}, ValueError),
        (OPERATOR, {"plateau": 0}, ValueError),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_runs(
    workload: Any, options: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        lw.tune(workload, **{"max_trials": 2, **options})


@pytest.mark.parametrize("trials", [0, 100_001, 2.5, "8"])
def test_a_number_of_trials_out_of_range_is_refused(trials: int) -> None:
    with pytest.raises(ValueError, match=r"max_trials is .*: expected a number from 1 to 100000"):
        lw.tune(OPERATOR, max_trials=trials)


def test_what_is_no_workload_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a workload is .* not a Trace"):
        lw.tune(lw.Trace(()), max_trials=1)  # type: ignore[call-overload]


def test_several_workloads_share_the_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "kept_runner", AnsweringRunner.kept)
    other = lw.ops.from_spec("matmul:16,16,8")
    workloads: list[lw.PrimFunc | str] = [OPERATOR, other, "batch_matmul:2,16,16,16"]
    results = lw.tune(workloads, weights=[1.0, 50.0, 1.0], max_trials=96, strategy="random")
    assert [result.func.name for result in results] == ["matmul", "matmul", "batch_matmul"]
    counts = [len(result.trials) for result in results]
    assert (sum(counts), min(counts)) == (96, 16)
    assert max(counts) == counts[1]
    assert all(result.default is not None for result in results)


def test_several_workloads_that_cannot_share_are_refused() -> None:
    with pytest.raises(ValueError, match="1 weights for 2 workloads"):
        lw.tune([OPERATOR, "softmax:8,32"], weights=[1.0])
    with pytest.raises(ValueError, match="is duplicated"):
        lw.tune([OPERATOR, OPERATOR])
    with pytest.raises(ValueError, match="too few for 2 tasks"):
        lw.tune([OPERATOR, "softmax:8,32"], max_trials=31)


def test_a_kernel_for_another_machine_is_refused_before_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tuning, "kept_runner", None)
    target = f"cpu -mcpu={'x86-64' if architecture() == 'aarch64' else 'cortex-a72'} -num-cores=1"
    with pytest.raises(lw.TargetError, match="can't measure it: a kernel was built for") as caught:
        lw.tune("relu:4", target=target)
    assert "`loopwright serve --runner` (docs/remote.md)" in str(caught.value)
