"""A runner whose builds are shared with children on other cores."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread

import psutil
import pytest

from compiler.runtime.measurement import ErrorKind, Measurement
from tests.faults.requests import CHILD, COPY, DEFAULT_TRACE, LIMITS, TARGET, fault, request
from tests.patience import PATIENCE_SECS
from workers.child import builders
from workers.child.runner import ChildRunner
from workers.child.supervisor import ChildSupervisor, RunnerClosedError
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureLimits

NUM_BUILDERS = 2
_older: set[psutil.Process] = set()


@pytest.fixture(autouse=True)
def older_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remember the children that earlier tests left, such as idle ones that are kept."""
    monkeypatch.setattr(sys.modules[__name__], "_older", set(psutil.Process().children()))


@pytest.fixture
def several_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "available_cores", lambda: NUM_BUILDERS + 1)


@pytest.fixture
def runner(several_cores: None) -> Iterator[ChildRunner]:
    """Yield a runner whose builders take part from the next request on."""
    del several_cores
    with ChildRunner(child_module=CHILD) as runner:
        runner.shares_builds = True
        measure(runner, DEFAULT_TRACE)
        yield runner


def measure(runner: ChildRunner, *traces: str, limits: MeasureLimits = LIMITS) -> list[Measurement]:
    results = list(runner.measure(request(*traces, limits=limits)))
    assert [index for index, _ in results] == list(range(len(traces)))
    return [measurement for _, measurement in results]


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child not in _older]


def builders_of(runner: ChildRunner) -> list[psutil.Process]:
    return [child for child in children() if child.pid != runner.child_pid]


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_builders_start_with_the_second_request_if_builds_are_shared(several_cores: None) -> None:
    del several_cores
    with ChildRunner(child_module=CHILD) as runner:
        measure(runner, DEFAULT_TRACE)
        measure(runner, DEFAULT_TRACE)
        assert builders_of(runner) == []
        runner.shares_builds = True
        measure(runner, *[DEFAULT_TRACE] * 4)
        wait_until(lambda: len(builders_of(runner)) == NUM_BUILDERS)
        runner.release()
        assert children() == []


def test_one_core_has_no_builders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builders, "available_cores", lambda: 1)
    with ChildRunner(child_module=CHILD) as runner:
        runner.shares_builds = True
        for _ in range(2):
            assert measure(runner, DEFAULT_TRACE)[0].ok
        assert builders_of(runner) == []


def test_each_candidate_is_built_once_and_measured_in_order(
    runner: ChildRunner, tmp_path: Path
) -> None:
    log = tmp_path / "builds"
    num_asked, pids = 0, set[str]()

    def others_built() -> bool:
        nonlocal num_asked
        numbered = range(num_asked, num_asked + 8)
        num_asked += 8
        found = measure(
            runner, *[fault("logs its build", marker=str(log), number=str(n)) for n in numbered]
        )
        assert [m.error for m in found] == [None] * 8
        assert all(m.build_secs > 0 and m.worker and m.toolchain for m in found)
        numbers, by_whom = zip(*map(str.split, log.read_text().splitlines()), strict=True)
        assert sorted(map(int, numbers)) == list(range(num_asked))
        pids.update(by_whom)
        return len(pids) == NUM_BUILDERS + 1

    wait_until(others_built)


def test_faults_of_builds_cost_one_trial_each_wherever_they_are_built(runner: ChildRunner) -> None:
    crash, wrong, refused = fault("exits"), fault("answers nonsense"), fault("fails in the build")
    found = measure(runner, *[DEFAULT_TRACE, crash, wrong, refused] * 6)
    errors = [None, ErrorKind.CRASH, ErrorKind.CRASH, ErrorKind.BUILD_ERROR]
    assert [m.error for m in found] == errors * 6
    assert all("LLVM" in m.toolchain for m in found)


def test_a_build_that_hangs_is_a_timeout(runner: ChildRunner) -> None:
    limits = replace(LIMITS, build_timeout_secs=8.0)
    hung = fault("sleeps in the build")
    first, *rest = measure(runner, *[hung, DEFAULT_TRACE, hung, DEFAULT_TRACE], limits=limits)
    assert first.error is ErrorKind.TIMEOUT
    assert first.message == "the build took longer than 8 s"
    assert [m.error for m in rest] == [None, ErrorKind.TIMEOUT, None]


def test_builders_are_stopped_while_a_kernel_runs(runner: ChildRunner) -> None:
    measure(runner, *[DEFAULT_TRACE] * 8)
    wait_until(lambda: len(builders_of(runner)) == NUM_BUILDERS)
    hung: list[Measurement] = []
    limits = replace(LIMITS, run_timeout_secs=4.0)
    traces = (fault("hang"), *[DEFAULT_TRACE] * 4)
    thread = Thread(target=lambda: hung.extend(measure(runner, *traces, limits=limits)))
    thread.start()

    def all_stopped() -> bool:
        statuses = {process.status() for process in builders_of(runner)}
        return statuses == {psutil.STATUS_STOPPED}

    wait_until(all_stopped)
    thread.join(PATIENCE_SECS)
    assert [m.error for m in hung] == [ErrorKind.TIMEOUT, *[None] * 4]
    assert not all_stopped()


def test_a_comparison_leaves_no_builder_stopped(runner: ChildRunner) -> None:
    measure(runner, *[DEFAULT_TRACE] * 8)
    wait_until(lambda: len(builders_of(runner)) == NUM_BUILDERS)
    asked = CompareRequest(COPY, TARGET, (DEFAULT_TRACE,), num_rounds=2, seed=0, limits=LIMITS)
    rounds = runner.compare_in_batches(asked)
    next(rounds)
    assert all(p.status() != psutil.STATUS_STOPPED for p in builders_of(runner))
    assert len(list(rounds)) > 0


def test_the_time_of_a_suspension_does_not_count_for_a_deadline() -> None:
    supervisor = ChildSupervisor(CHILD)
    try:
        supervisor.living()
        builds = builders.RoundBuilds(request(DEFAULT_TRACE, limits=MeasureLimits(1.0)))
        assert builds.take() == 0
        thread = Thread(target=builds.build, args=(0, supervisor))
        with supervisor.suspended():
            thread.start()
            time.sleep(1.5)  # longer than the limit of the build
            assert not builds.is_done(0)
        thread.join(PATIENCE_SECS)
        assert not isinstance(builds.wait_for(0), Measurement)
    finally:
        supervisor.end_all()


def test_a_request_may_be_left_before_its_end(runner: ChildRunner) -> None:
    results = runner.measure(request(*[DEFAULT_TRACE] * 8))
    assert next(results)[1].ok
    results.close()  # type: ignore[attr-defined]
    assert all(m.ok for m in measure(runner, *[DEFAULT_TRACE] * 4))


def test_closing_ends_what_is_under_way(runner: ChildRunner) -> None:
    errors: list[Exception] = []

    def ask() -> None:
        with suppress(RunnerClosedError):
            measure(runner, *[fault("sleeps in the build")] * 8)
            errors.append(AssertionError("it was not closed"))

    thread = Thread(target=ask)
    thread.start()
    wait_until(lambda: len(children()) == NUM_BUILDERS + 1)
    runner.close()
    thread.join(PATIENCE_SECS)
    assert not thread.is_alive()
    assert errors == []
    assert children() == []
