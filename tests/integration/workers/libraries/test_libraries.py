"""Libraries beside kernels, in real children: right ones are timed, others cost nobody anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest

from compiler.ir.text.printer import script
from compiler.ops.recognize import recognize
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import ErrorKind, Measurement
from tests.faults.requests import DEFAULT_TRACE, TARGET
from workers.child.runner import ChildRunner
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureLimits, MeasureRequest

ROUNDS = 3
SPEC = "matmul:8,8,8,bias=true"


def request(
    *libraries: str,
    spec: str = SPEC,
    trace: str = DEFAULT_TRACE,
    limits: MeasureLimits | None = None,
) -> CompareRequest:
    func = from_spec(spec)
    return CompareRequest(
        script(func),
        TARGET,
        (trace,),
        num_rounds=ROUNDS,
        seed=0,
        limits=limits,
        libraries=libraries,
        operator=str(recognize(func)),
    )


@pytest.fixture(scope="module")
def runner() -> Iterator[ChildRunner]:
    with ChildRunner(worker="bench/7", child_module="tests.faults.library_child") as found:
        yield found


def errors(rounds: list[list[Measurement]]) -> list[list[ErrorKind | None]]:
    return [[m.error for m in measured] for measured in rounds]


def test_numpy_is_timed_beside_the_kernel(runner: ChildRunner) -> None:
    rounds = list(runner.compare(request("numpy")))
    assert errors(rounds) == [[None, None]] * ROUNDS
    for kernel, numpy in rounds:
        assert len(kernel.run_secs) == len(numpy.run_secs), "turns are fair"
        assert numpy.toolchain.startswith(f"NumPy {np.__version__}, ")
        assert "LLVM" in kernel.toolchain
        assert {kernel.worker, numpy.worker} == {"bench/7"}


FAULTS = {
    "is wrong": (ErrorKind.WRONG_RESULT, ""),
    "is another type": (ErrorKind.WRONG_RESULT, "float64 instead of"),
    "is another shape": (ErrorKind.WRONG_RESULT, "instead of (8, 8)"),
    "writes its input": (ErrorKind.WRONG_RESULT, "wrote to its input"),
    "raises": (ErrorKind.BUILD_ERROR, "a bug of the library"),
    "unknown": (ErrorKind.BUILD_ERROR, "known are numpy, torch"),
    "crashes": (ErrorKind.CRASH, "SIGSEGV"),
    "crashes later": (ErrorKind.CRASH, "SIGSEGV"),
}


def test_libraries_that_go_wrong_cost_the_others_no_round(runner: ChildRunner) -> None:
    rounds = list(runner.compare(request(*FAULTS, "numpy")))
    assert [(row[0], row[-1]) for row in errors(rounds)] == [(None, None)] * ROUNDS
    for (kind, words), found in zip(FAULTS.values(), rounds[-1][1:-1], strict=True):
        assert found.error == kind
        assert words in found.message


def test_a_library_that_never_ends_is_a_timeout(runner: ChildRunner) -> None:
    slow = request("hangs", "numpy", limits=MeasureLimits(run_timeout_secs=1.0))
    assert errors(list(runner.compare(slow))) == [[None, ErrorKind.TIMEOUT, None]] * ROUNDS


def test_without_a_right_library_there_is_nothing_to_time(runner: ChildRunner) -> None:
    rounds = list(runner.compare(request("is wrong")))
    assert [errors(rounds)[0][1], len(rounds)] == [ErrorKind.WRONG_RESULT, ROUNDS]
    assert "nothing left to compare" in rounds[-1][0].message


def test_a_candidate_that_fails_leaves_nothing_to_compare(runner: ChildRunner) -> None:
    rounds = list(runner.compare(request("numpy", trace='{"format": 1}')))
    assert len(rounds) == ROUNDS
    assert rounds[0][0].error == ErrorKind.BUILD_ERROR
    assert rounds[0][1].error is not None


def test_no_candidate_meets_what_a_library_left_behind(runner: ChildRunner) -> None:
    measure = MeasureRequest(script(from_spec(SPEC)), TARGET, (DEFAULT_TRACE,))
    assert all(m.ok for _, m in runner.measure(measure))
    before = runner.child_pid
    assert errors(list(runner.compare(request("numpy")))) == [[None, None]] * ROUNDS
    assert runner.child_pid is None
    assert all(m.ok for _, m in runner.measure(measure))
    assert runner.child_pid not in {None, before}


@pytest.mark.parametrize(
    "spec",
    [
        "matmul:6,7,8,transpose_b=true,batch=2,activation=silu:float64",
        "conv2d:1,4,7,9,6,3,2,1,2,2,layout=NHWC",
        "depthwise_conv2d:1,3,8,9,3x5,1,1x2,multiplier=2,layout=NHWC,bias=true",
        "attention:1,2,4,6,4,causal=true,scale=0.3",
        "layer_norm:3,8,residual=true",
    ],
)
def test_libraries_compute_what_an_operator_does(runner: ChildRunner, spec: str) -> None:
    names = ("numpy", *(["torch"] if find_spec("torch") else []))
    rounds = list(runner.compare(request(*names, spec=spec)))
    assert errors(rounds) == [[None] * (1 + len(names))] * ROUNDS


def test_what_numpy_has_no_code_for_is_refused(runner: ChildRunner) -> None:
    rounds = list(runner.compare(request("numpy", spec="gelu:4,4")))
    assert "no error function" in rounds[0][1].message


def test_a_request_with_libraries_crosses_a_process_as_text() -> None:
    original = request("numpy", "torch")
    assert CompareRequest.from_json(json.loads(json.dumps(original.to_json()))) == original
