"""A runner on a device: builders, a spare child, faults, and turns with other processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import psutil
import pytest

from compiler.backends.cuda.nvrtc import nvrtc_release
from compiler.backends.host_device import DEVICE_VARIABLE, HostDevice
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.cuda import CudaTarget
from tests.faults.requests import COPY, DEFAULT_TRACE, fault
from tests.patience import PATIENCE_SECS
from workers.child.device_lock import DeviceLock
from workers.child.runner import ChildRunner
from workers.child.supervisor import RunnerClosedError
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureLimits, MeasureRequest

pytestmark = pytest.mark.skipif(nvrtc_release() is None, reason="no NVRTC on this host")

CHILD = "tests.faults.gpu_child"
DEVICE = HostDevice(
    CudaTarget("cuda -gpu=h200 -emulated"),
    "h200-emulated-0",
    uuid=f"test-{os.getpid()}",
    variables={"CUDA_VISIBLE_DEVICES": "GPU-0"},
)
LIMITS = MeasureLimits(run_timeout_secs=5.0)
COMPARISON = CompareRequest(
    COPY, DEVICE.target.name, (DEFAULT_TRACE,), num_rounds=1, seed=0, limits=LIMITS
)


@pytest.fixture(scope="module")
def runner() -> Iterator[ChildRunner]:
    with ChildRunner(worker="bench/gpu", device=DEVICE, child_module=CHILD) as runner:
        yield runner


def request(*traces: str, limits: MeasureLimits = LIMITS) -> MeasureRequest:
    return MeasureRequest(COPY, DEVICE.target.name, traces, limits=limits)


def measure(runner: ChildRunner, *traces: str) -> list[Measurement]:
    results = list(runner.measure(request(*traces)))
    assert [index for index, _ in results] == list(range(len(traces)))
    return [measurement for _, measurement in results]


def children_by_device() -> dict[str, set[int]]:
    """Return the ids of this process's children by the device that their environment names."""
    by_device: dict[str, set[int]] = {}
    for child in psutil.Process().children():
        name = child.environ().get(DEVICE_VARIABLE)
        if name is not None:
            by_device.setdefault(name, set()).add(child.pid)
    return by_device


def test_the_child_that_measures_gets_its_candidates_from_builders_without_the_device(
    runner: ChildRunner,
) -> None:
    (measurement,) = measure(runner, DEFAULT_TRACE)
    assert measurement.ok, measurement.message
    assert measurement.build_secs > 0
    assert measurement.worker == "bench/gpu"
    assert "NVRTC" in measurement.toolchain
    assert measurement.resources is not None
    children = children_by_device()
    assert runner.child_pid in children[DEVICE.name]
    builders = [psutil.Process(pid) for pid in children[""]]
    assert builders
    assert {builder.environ()["CUDA_VISIBLE_DEVICES"] for builder in builders} == {""}


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("loses the device", ErrorKind.DEVICE_ERROR, "illegal address"),
        ("kills its child", ErrorKind.CRASH, "the first run died of SIGABRT"),
        ("hangs", ErrorKind.TIMEOUT, "the first run took longer than 1 s"),
    ],
)
def test_a_fault_on_a_device_costs_one_trial_and_the_spare_takes_over(
    runner: ChildRunner, name: str, kind: ErrorKind, message: str
) -> None:
    assert measure(runner, DEFAULT_TRACE)[0].ok
    first = runner.child_pid
    (spare,) = children_by_device()[DEVICE.name] - {first}
    hasty = request(DEFAULT_TRACE, fault(name), limits=replace(LIMITS, run_timeout_secs=1.0))
    before, failed = (measurement for _, measurement in runner.measure(hasty))
    assert before.ok, before.message
    assert failed.error == kind, failed
    assert message in failed.message
    assert measure(runner, DEFAULT_TRACE)[0].ok
    assert runner.child_pid == spare


def test_a_fault_of_a_build_costs_one_trial_and_no_child_of_the_device(
    runner: ChildRunner,
) -> None:
    assert measure(runner, DEFAULT_TRACE)[0].ok
    first = runner.child_pid
    refused = '{"format": 1, "instructions": [{}]}'
    traces = (fault("kills its builder"), DEFAULT_TRACE, refused, DEFAULT_TRACE)
    crashed, after, wrong, last = measure(runner, *traces)
    assert crashed.error == ErrorKind.CRASH
    assert "the build died of SIGABRT" in crashed.message
    assert wrong.error == ErrorKind.BUILD_ERROR
    assert "NVRTC" in wrong.toolchain
    assert all(measurement.ok for measurement in (after, last))
    assert runner.child_pid == first


def test_a_build_that_hangs_is_a_timeout(runner: ChildRunner) -> None:
    hasty = request(fault("hangs in the build"), limits=replace(LIMITS, build_timeout_secs=1.0))
    ((_, hung),) = runner.measure(hasty)
    assert hung.error == ErrorKind.TIMEOUT
    assert hung.message == "the build took longer than 1 s"
    assert measure(runner, DEFAULT_TRACE)[0].ok


def test_a_candidate_waits_while_another_process_measures_on_the_device(
    runner: ChildRunner, tmp_path: Path
) -> None:
    log = tmp_path / "runs"
    results: list[Measurement] = []
    trace = fault("logs its runs", log=str(log))
    thread = Thread(target=lambda: results.extend(measure(runner, trace)))
    with DeviceLock(DEVICE.uuid).taken(lambda: False):
        thread.start()
        thread.join(0.5)
        assert not log.exists()
    thread.join(PATIENCE_SECS)
    assert results[0].ok, results
    assert log.exists()


def test_resting_ends_builders_and_spare(runner: ChildRunner) -> None:
    assert children_by_device()
    runner.release()
    assert children_by_device() == {}


def test_closing_ends_a_wait_for_the_device() -> None:
    closed = ChildRunner(device=DEVICE, child_module=CHILD)
    errors: list[Exception] = []

    def compare() -> None:
        try:
            list(closed.compare(COMPARISON))
        except RunnerClosedError as error:
            errors.append(error)

    thread = Thread(target=compare)
    with DeviceLock(DEVICE.uuid).taken(lambda: False):
        thread.start()
        thread.join(0.1)
        closed.close()
        thread.join(PATIENCE_SECS)
    assert len(errors) == 1


def test_closing_ends_all_requests_with_the_same_error() -> None:
    closed = ChildRunner(device=DEVICE, child_module=CHILD)
    errors: list[Exception] = []

    def ask() -> None:
        try:
            measure(closed, *[fault("hangs in the build")] * 8)
        except RuntimeError as error:
            errors.append(error)

    threads = [Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE_SECS
    while not children_by_device():  # a build has begun, and most wait for a free builder
        assert time.monotonic() < end
        time.sleep(0.01)
    closed.close()
    for thread in threads:
        thread.join(PATIENCE_SECS)
    ask()
    assert [type(error) for error in errors] == [RunnerClosedError] * 3
