import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from compiler.runtime.measurement import ErrorKind, Measurement
from tests.faults.requests import CHILD, DEFAULT_TRACE, LIMITS, fault, request
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureLimits


@pytest.fixture(scope="module")
def runner() -> Iterator[ChildRunner]:
    with ChildRunner(child_module=CHILD) as runner:
        yield runner


def measure_between_good_ones(
    runner: ChildRunner, trace: str, limits: MeasureLimits = LIMITS
) -> Measurement:
    """Measure a candidate with a fault; the candidates around it must not notice."""
    found = dict(runner.measure(request(DEFAULT_TRACE, trace, DEFAULT_TRACE, limits=limits)))
    assert sorted(found) == [0, 1, 2]
    assert found[0].ok, found[0].message
    assert found[2].ok, found[2].message
    return found[1]


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("segmentation fault", ErrorKind.CRASH, "the first run died of SIGSEGV"),
        ("abort", ErrorKind.CRASH, "the first run died of SIGABRT"),
        ("exits", ErrorKind.CRASH, "the build died of exit code 3: had enough"),
        ("closes its pipe", ErrorKind.CRASH, "the build closed the pipe"),
        ("answers garbage", ErrorKind.CRASH, "the build broke the pipe"),
        ("answers nonsense", ErrorKind.CRASH, "'lunch' is not a valid Phase"),
        ("is killed", ErrorKind.CRASH, "was killed by another process, twice"),
        ("writes nothing", ErrorKind.WRONG_RESULT, "16 element(s) are off"),
        ("one element wrong", ErrorKind.WRONG_RESULT, "B[0] is 7.0"),
        ("wrong later", ErrorKind.WRONG_RESULT, "a later run differs from the first: B[0] is 7.0"),
        ("writes its input", ErrorKind.WRONG_RESULT, "the kernel wrote to its input A"),
        ("eats memory", ErrorKind.OUT_OF_MEMORY, "the first run died of SIGABRT with"),
        ("huge workspace", ErrorKind.OUT_OF_MEMORY, "no memory left"),
        ("allocates in the build", ErrorKind.OUT_OF_MEMORY, "no memory left"),
        ("fails in the build", ErrorKind.BUILD_ERROR, "AssertionError: a bug of the compiler"),
    ],
)
def test_a_fault_is_one_trial_with_a_typed_error(
    runner: ChildRunner, name: str, kind: ErrorKind, message: str
) -> None:
    # A child's peak is known where it is above that of the process which started it: this one.
    limits = replace(LIMITS, memory_bytes=2 << 30) if name == "eats memory" else LIMITS
    found = measure_between_good_ones(runner, fault(name), limits)
    assert found.error == kind, found
    assert message in found.message
    assert found.worker == runner.worker
    assert "LLVM" in found.toolchain


def test_a_run_that_never_ends_is_a_timeout(runner: ChildRunner) -> None:
    found = measure_between_good_ones(runner, fault("hang"), replace(LIMITS, run_timeout_secs=1.0))
    assert found.error == ErrorKind.TIMEOUT
    assert found.message == "the first run took longer than 1 s"
    assert found.check_secs >= 1.0


@pytest.mark.parametrize("name", ["sleeps in the build", "is stopped", "prints forever"])
def test_a_build_that_never_ends_is_a_timeout(runner: ChildRunner, name: str) -> None:
    # The next candidate waits for a new child within the same limit, on a machine that may be busy.
    found = measure_between_good_ones(runner, fault(name), replace(LIMITS, build_timeout_secs=8.0))
    assert found.error == ErrorKind.TIMEOUT
    assert found.message == "the build took longer than 8 s"
    assert found.build_secs >= 8.0


def test_what_a_child_prints_is_not_taken_for_its_answer(runner: ChildRunner) -> None:
    assert measure_between_good_ones(runner, fault("says garbage")).ok


def test_a_candidate_whose_child_somebody_killed_is_measured_again(
    runner: ChildRunner, tmp_path: Path
) -> None:
    trace = fault("is killed once", marker=str(tmp_path / "killed"))
    assert measure_between_good_ones(runner, trace).ok
    assert (tmp_path / "killed").exists()


def test_crashes_leave_no_descriptor_and_no_zombie(runner: ChildRunner) -> None:
    list(runner.measure(request(DEFAULT_TRACE)))
    descriptors = len(os.listdir("/proc/self/fd"))
    children = len(psutil.Process().children())
    for _ in range(3):
        list(runner.measure(request(fault("segmentation fault"), fault("exits"))))
    list(runner.measure(request(DEFAULT_TRACE)))
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(psutil.Process().children()) == children


@pytest.mark.parametrize(
    "body",
    [
        '{"peak_bytes": 1e999, "measurement": {}}',
        '{"peak_bytes": Infinity, "measurement": {}}',
        '{"peak_bytes": 1, "measurement": []}',
        '{"peak_bytes": 1, "measurement": {"run_secs": "1"}}',
        '{"peak_bytes": 1, "measurement": {"run_secs": [-1]}}',
        '{"peak_bytes": 1, "measurement": {"run_secs": [true]}}',
        '{"peak_bytes": 1, "measurement": {"run_secs": [1], "toolchain": {"a": 1}}}',
        '{"peak_bytes": 1, "measurement": {"run_secs": [1], "max_error": "x"}}',
        '{"peak_bytes": [], "measurement": {}}',
        '{"phase": []}',
        "{}",
    ],
)
def test_an_answer_that_is_none_costs_one_trial(runner: ChildRunner, body: str) -> None:
    found = measure_between_good_ones(runner, fault("forges its answer", body=body))
    assert found.error == ErrorKind.CRASH
    assert "broke the pipe to its runner" in found.message
