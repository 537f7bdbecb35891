"""Candidates are measured on devices without Python, behind a runner."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from compiler import ops
from compiler.backends.backend import device_for
from compiler.backends.cpu.runner_devices import RUNNERS, runner_devices, use_runners
from compiler.ir.text.printer import script
from compiler.runtime.measurement import ErrorKind
from compiler.target.error import TargetError
from compiler.target.target import Target
from tests.integration.compiler.remote.runners import runner_here
from tests.targets import runs_here
from workers.child.runner import ChildRunner
from workers.engine.host_workers import host_workers
from workers.health.self_test import SelfTestError, self_test
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest

# A level that this host is never detected as, so that its kernels go to the device.
TARGET = "cpu -mcpu=x86-64-v2 -num-cores=2"
TRACE = '{"format": 1, "instructions": []}'
BROKEN = '{"format": 1, "instructions": [{"name": "no such"}]}'
pytestmark = runs_here(2)


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildRunner]:
    monkeypatch.setenv(RUNNERS, "")
    use_runners([f"{TARGET} @ {' '.join(runner_here())}"])
    with ChildRunner(device=device_for(Target(TARGET))) as opened:
        yield opened


def test_candidates_are_checked_and_timed_on_the_device(runner: ChildRunner) -> None:
    tested = self_test(runner)
    assert tested.label == "cpu/x86-64-v2"
    workload = script(ops.dense(16, 32, 24, bias=True, constant="W"))
    request = MeasureRequest(workload, TARGET, (TRACE, BROKEN, TRACE))
    first, broken, again = (measurement for _, measurement in runner.measure(request))
    for measurement in (first, again):
        assert measurement.error is None, measurement.message
        assert measurement.max_error is not None
        assert all(0 < secs < 1 for secs in measurement.run_secs)
    assert broken.error is ErrorKind.BUILD_ERROR


def test_candidates_are_compared_and_libraries_are_not(runner: ChildRunner) -> None:
    workload = script(ops.matmul(32, 32, 32))
    rounds = list(
        runner.compare(CompareRequest(workload, TARGET, (TRACE, TRACE), num_rounds=2, seed=0))
    )
    assert [[m.error for m in measured] for measured in rounds] == [[None, None]] * 2
    request = CompareRequest(
        *(workload, TARGET, (TRACE,)),
        num_rounds=1,
        seed=0,
        libraries=("numpy",),
        operator="matmul:32,32,32:float32",
    )
    ((kernel, library),) = list(runner.compare(request))
    assert kernel.message == "there is nothing left to compare it with"
    assert library.error is not None
    assert "numpy does not run on the device of cpu -mcpu=x86-64-v2" in library.message


def test_an_emulated_device_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNNERS, "")
    use_runners([f"{TARGET} @ {' '.join(runner_here())} --emulated"])
    with (
        ChildRunner(device=device_for(Target(TARGET))) as emulated,
        pytest.raises(SelfTestError, match="its times say nothing"),
    ):
        self_test(emulated)


def test_a_runner_is_a_worker_of_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUNNERS, "")
    use_runners(["cpu -mcpu=cortex-a72 -num-cores=4 @ ssh board './a runner' --memory 64"])
    (device,) = runner_devices()
    assert device.target == Target("cpu -mcpu=cortex-a72 -num-cores=4")
    command = json.loads(device.variables["LOOPWRIGHT_RUNNER_COMMAND"])
    assert command == ["ssh", "board", "./a runner", "--memory", "64"]
    *_, worker = host_workers(1)
    assert (worker.name, worker.label) == ("cortex-a72-0", "cpu/cortex-a72")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ssh board ./loopwright-runner", "a runner is a target and a command"),
        ("cpu -mcpu=cortex-a72 @ ", "a runner is a target and a command"),
        ("cpu -mcpu=cortex-a72 @ ssh 'board", "is malformed: No closing quotation"),
        ("cpu -mcpu=cortex-b72 @ ssh board", "did you mean 'cortex-a72'"),
        ("cuda -gpu=h200 @ ssh board", "a CPU target begins with 'cpu'"),
    ],
)
def test_a_runner_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        use_runners([text])
