import json
import os
import signal
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest

from compiler.backends.cpu.codegen.threads.thread_pool import THREAD_NAME
from compiler.executor.cores import available_cores
from compiler.ir.text.printer import script
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import ErrorKind
from compiler.schedule.schedule import Schedule
from compiler.target.target import Target
from tests.faults.requests import CHILD, COPY, DEFAULT_TRACE, LIMITS, TARGET, fault, request
from tests.patience import PATIENCE_SECS
from workers.child.runner import ChildRunner
from workers.child.supervisor import ChildStartError, RunnerClosedError
from workers.health.self_test import self_test
from workers.wire.request import MeasureRequest


def test_a_child_is_kept_between_requests() -> None:
    with ChildRunner() as runner:
        assert runner.child_pid is None
        list(runner.measure(request(DEFAULT_TRACE)))
        first = runner.child_pid
        list(runner.measure(request(DEFAULT_TRACE, DEFAULT_TRACE)))
        assert first is not None
        assert runner.child_pid == first


def test_measurements_name_worker_and_toolchain() -> None:
    with ChildRunner(worker="bench/7") as runner:
        ((index, found),) = runner.measure(request(DEFAULT_TRACE))
    assert index == 0
    assert found.ok, found.message
    assert found.worker == "bench/7"
    assert found.toolchain.startswith("loopwright-codegen ")


def test_a_script_that_is_wrong_is_a_build_error() -> None:
    with ChildRunner() as runner:
        ((_, found),) = runner.measure(MeasureRequest("import os", TARGET, (DEFAULT_TRACE,)))
    assert found.error == ErrorKind.BUILD_ERROR


def test_a_request_longer_than_a_pipe_holds_gets_through() -> None:
    text = COPY + "\n" + "# a comment\n" * 20_000
    with ChildRunner() as runner:
        ((_, found),) = runner.measure(MeasureRequest(text, TARGET, (DEFAULT_TRACE,)))
    assert found.ok, found.message


def test_parallel_candidates_are_measured_in_one_child_that_ends_with_its_threads() -> None:
    func = from_spec("matmul:128,128,128")
    schedule = Schedule(func)
    loop = schedule.get_loops(schedule.get_child_blocks(schedule.get_block("root"))[0])[0]
    schedule.parallel(loop)
    static = json.dumps(schedule.trace.to_json())
    schedule.annotate(loop, "dynamic_partition", 8)
    dynamic = json.dumps(schedule.trace.to_json())
    candidates = (static, dynamic, DEFAULT_TRACE) * 3
    with ChildRunner() as runner:
        asked = MeasureRequest(script(func), "cpu -num-cores=2", candidates, limits=LIMITS)
        found = [measurement for _, measurement in runner.measure(asked)]
        pid = runner.child_pid
        assert pid is not None
        threads = list(Path(f"/proc/{pid}/task").glob("*/comm"))
        workers = [t for t in threads if t.read_text().strip() == THREAD_NAME]
    assert [f.error for f in found] == [None] * 9, found
    assert len(workers) == min(2, available_cores()) - 1
    assert not psutil.pid_exists(pid)


def test_a_slow_candidate_is_given_up_once_there_is_an_incumbent() -> None:
    hang = replace(request(fault("hang")), incumbent_secs=1e-3)
    with ChildRunner(child_module=CHILD) as runner:
        ((_, found),) = runner.measure(hang)
    assert found.error == ErrorKind.TIMEOUT
    assert found.message == "the first run took longer than 2 s"


def test_an_oracle_that_takes_too_long_is_not_waited_for_again() -> None:
    workload = script(from_spec("matmul:256,256,256"))
    limits = replace(LIMITS, oracle_timeout_secs=1e-3)
    with ChildRunner() as runner:
        hopeless = MeasureRequest(workload, TARGET, (DEFAULT_TRACE,) * 2, limits=limits)
        found = [measurement for _, measurement in runner.measure(hopeless)]
        assert [f.message for f in found] == ["the oracle took longer than 0.001 s"] * 2
        assert runner.child_pid is None, "the second candidate needed no child"
        ((_, patient),) = runner.measure(MeasureRequest(workload, TARGET, (DEFAULT_TRACE,)))
    assert {f.error for f in found} == {ErrorKind.TIMEOUT}
    assert all(f.worker and f.toolchain for f in found)
    assert patient.ok, patient.message


def test_an_oracle_without_memory_is_not_tried_again() -> None:
    workload = script(from_spec("attention:1,1,5000,5000,8"))
    limits = replace(LIMITS, memory_bytes=1 << 27)
    with ChildRunner() as runner:
        hopeless = MeasureRequest(workload, TARGET, (DEFAULT_TRACE,) * 2, limits=limits)
        measurements = runner.measure(hopeless)
        _, first = next(measurements)
        runner.release()
        _, second = next(measurements)
        assert runner.child_pid is None, "the second candidate needed no child"
    assert first.error is ErrorKind.OUT_OF_MEMORY
    assert "the oracle can't hold the expected result: Unable to allocate" in first.message
    assert second == first


def test_a_child_that_was_killed_while_idle_is_replaced() -> None:
    with ChildRunner() as runner:
        list(runner.measure(request(DEFAULT_TRACE)))
        pid = runner.child_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        ((_, found),) = runner.measure(request(DEFAULT_TRACE))
        assert found.ok, found.message
        assert runner.child_pid != pid


def test_resting_ends_the_child_and_the_next_candidate_starts_another() -> None:
    with ChildRunner() as runner:
        list(runner.measure(request(DEFAULT_TRACE)))
        runner.release()
        assert runner.child_pid is None
        ((_, found),) = runner.measure(request(DEFAULT_TRACE))
        assert found.ok


def test_children_live_on_when_the_thread_that_measured_ends() -> None:
    with ChildRunner() as runner:
        thread = threading.Thread(target=lambda: list(runner.measure(request(DEFAULT_TRACE))))
        thread.start()
        thread.join()
        pid = runner.child_pid
        time.sleep(0.2)
        list(runner.measure(request(DEFAULT_TRACE)))
        assert runner.child_pid == pid


def test_an_iterator_may_be_left_in_the_middle() -> None:
    with ChildRunner() as runner:
        results = runner.measure(request(DEFAULT_TRACE, DEFAULT_TRACE))
        next(results)
        ((index, found),) = runner.measure(request(DEFAULT_TRACE))
        assert (index, found.ok) == (0, True)


def test_threads_take_turns() -> None:
    found: dict[int, list[int]] = {}

    def measure(number: int) -> None:
        results = runner.measure(request(*[DEFAULT_TRACE] * 5))
        found[number] = [index for index, measurement in results if measurement.ok]

    with ChildRunner() as runner:
        threads = [threading.Thread(target=measure, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {number: [0, 1, 2, 3, 4] for number in range(3)}


def test_closing_ends_what_is_under_way() -> None:
    runner = ChildRunner(child_module=CHILD)
    outcome: list[BaseException] = []

    def measure() -> None:
        try:
            list(runner.measure(request(fault("hang"))))
        except RunnerClosedError as error:
            outcome.append(error)

    thread = threading.Thread(target=measure)
    thread.start()
    while runner.child_pid is None:
        time.sleep(0.01)
    child = psutil.Process(runner.child_pid)
    time.sleep(0.5)
    runner.close()
    thread.join(PATIENCE_SECS)
    assert not thread.is_alive()
    assert len(outcome) == 1
    assert not child.is_running()


def test_a_closed_runner_leaves_nothing_and_takes_nothing() -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    runner = ChildRunner()
    list(runner.measure(request(DEFAULT_TRACE)))
    child = psutil.Process(runner.child_pid)
    runner.close()
    runner.close()
    assert not child.is_running()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    with pytest.raises(RunnerClosedError):
        list(runner.measure(request(DEFAULT_TRACE)))


def test_a_child_that_cannot_start_is_an_error_of_the_runner() -> None:
    with (
        ChildRunner(child_module="tests.faults.no_such_child") as runner,
        pytest.raises(ChildStartError, match="No module named"),
    ):
        list(runner.measure(request(DEFAULT_TRACE)))


def test_limits_of_the_runner_hold_where_the_request_has_none() -> None:
    hang = replace(request(fault("hang")), limits=None)
    with ChildRunner(replace(LIMITS, run_timeout_secs=0.5), child_module=CHILD) as runner:
        ((_, found),) = runner.measure(hang)
    assert found.message == "the first run took longer than 0.5 s"


def test_the_self_test_passes_here() -> None:
    with ChildRunner() as runner:
        found = self_test(runner)
    assert found.label == Target("cpu").label
    assert found.run_secs > 0
    assert found.noise >= 0
    assert set(asdict(found)) == {"label", "toolchain", "run_secs", "noise", "test_secs"}
