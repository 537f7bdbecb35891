"""Candidates side by side, in real children, some with faults."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler.runtime.measurement import ErrorKind, Measurement
from tests.faults.requests import CHILD, COPY, DEFAULT_TRACE, LIMITS, TARGET, fault
from workers.child.runner import ChildRunner
from workers.child.supervisor import RunnerClosedError
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureLimits

ROUNDS = 4


def request(*traces: str, limits: MeasureLimits = LIMITS) -> CompareRequest:
    return CompareRequest(COPY, TARGET, traces, num_rounds=ROUNDS, seed=0, limits=limits)


@pytest.fixture(scope="module")
def runner() -> Iterator[ChildRunner]:
    with ChildRunner(worker="bench/7", child_module=CHILD) as found:
        yield found


def errors(rounds: list[list[Measurement]]) -> list[list[ErrorKind | None]]:
    return [[m.error for m in measured] for measured in rounds]


def test_each_round_has_times_of_each_candidate(runner: ChildRunner) -> None:
    rounds = list(runner.compare(request(DEFAULT_TRACE, DEFAULT_TRACE, DEFAULT_TRACE)))
    assert errors(rounds) == [[None] * 3] * ROUNDS
    assert all(secs > 0 for measured in rounds for m in measured for secs in m.run_secs)
    for measured in rounds:
        assert len({len(m.run_secs) for m in measured}) == 1, "turns are fair"
    assert {(m.worker, bool(m.toolchain)) for measured in rounds for m in measured} == {
        ("bench/7", True)
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("segmentation fault", ErrorKind.CRASH),
        ("one element wrong", ErrorKind.WRONG_RESULT),
        ("fails in the build", ErrorKind.BUILD_ERROR),
        ("answers garbage", ErrorKind.CRASH),
        ("crashes later", ErrorKind.CRASH),
    ],
)
def test_a_fault_costs_the_others_no_round(runner: ChildRunner, name: str, kind: ErrorKind) -> None:
    rounds = list(runner.compare(request(DEFAULT_TRACE, fault(name), DEFAULT_TRACE)))
    found = errors(rounds)
    assert [row[::2] for row in found] == [[None, None]] * ROUNDS
    assert found[-1][1] == kind
    assert {row[1] for row in found} <= {None, kind}


def test_a_candidate_that_never_ends_is_a_timeout(runner: ChildRunner) -> None:
    limits = MeasureLimits(run_timeout_secs=1.0)
    rounds = list(runner.compare(request(fault("hang"), DEFAULT_TRACE, limits=limits)))
    assert errors(rounds) == [[ErrorKind.TIMEOUT, None]] * ROUNDS


def test_where_all_candidates_fail_each_round_says_so(runner: ChildRunner) -> None:
    rounds = list(runner.compare(request(fault("abort"), fault("one element wrong"))))
    assert errors(rounds) == [[ErrorKind.CRASH, ErrorKind.WRONG_RESULT]] * ROUNDS


def test_a_workload_that_is_no_program_fails_every_candidate(runner: ChildRunner) -> None:
    wrong = CompareRequest("import os", TARGET, (DEFAULT_TRACE,), num_rounds=2, seed=0)
    assert errors(list(runner.compare(wrong))) == [[ErrorKind.BUILD_ERROR]] * 2


def test_who_kills_the_child_is_not_a_candidate(runner: ChildRunner, tmp_path: Path) -> None:
    killed = fault("is killed once", marker=str(tmp_path / "marker"))
    rounds = list(runner.compare(request(killed, DEFAULT_TRACE)))
    assert errors(rounds) == [[None, None]] * ROUNDS


def test_measuring_goes_on_after_rounds_that_nobody_read_to_their_end(runner: ChildRunner) -> None:
    rounds = runner.compare(request(DEFAULT_TRACE))
    next(rounds)
    again = list(runner.compare(request(DEFAULT_TRACE)))
    assert errors(again) == [[None]] * ROUNDS


def test_closing_the_runner_ends_a_comparison() -> None:
    runner = ChildRunner(child_module=CHILD)
    begun = threading.Timer(1.0, runner.close)
    begun.start()
    with pytest.raises(RunnerClosedError):
        list(runner.compare(request(fault("sleeps in the build"))))
    begun.join()


def test_a_request_crosses_a_process_as_text() -> None:
    original = request(DEFAULT_TRACE, limits=MeasureLimits(build_timeout_secs=3))
    assert CompareRequest.from_json(json.loads(json.dumps(original.to_json()))) == original
