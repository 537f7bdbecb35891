"""The pool of threads: each iteration runs once, whoever calls, forks, closes or ends."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from compiler import ops
from compiler.driver import build
from compiler.executor.cores import available_cores
from compiler.executor.error import ArgumentError
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.backends.cpu.runtime.native_tasks import count_iterations


def run_program(text: str) -> str:
    """Run a program in a process of its own; return what it prints."""
    prelude = (
        "import os, resource, signal, sys, threading\n"
        "from pathlib import Path\n"
        "from tests.unit.compiler.backends.cpu.runtime.native_tasks import count_iterations\n"
        "def name_of(task):\n"
        "    try:\n"
        "        return (task / 'comm').read_text().strip()\n"
        "    except OSError:  # it has ended meanwhile\n"
        "        return ''\n"
        "def workers():\n"
        "    return [t for t in Path('/proc/self/task').iterdir() if name_of(t) == 'loopwright']\n"
    )
    done = subprocess.run(
        # To fork with threads is what is tested.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", prelude + text],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("threads", range(1, 9))
def test_each_iteration_runs_once_on_any_number_of_threads(threads: int) -> None:
    for extent in (1, 2, 3, 7, 64, 1001):
        assert (count_iterations(100, extent, threads) == 100).all()


def test_a_hundred_thousand_launches() -> None:
    assert (count_iterations(100_000, 5, 2) == 100_000).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("step", [1, 3, 64, 1000])
def test_iterations_on_demand_run_once_each(threads: int, step: int) -> None:
    for extent in (1, 2, 63, 64, 65, 500):
        assert (count_iterations(50, extent, threads, step=step) == 50).all()


def test_on_demand_a_thread_that_is_held_up_holds_up_no_other() -> None:
    """Its one iteration ends when all others have: with a part a thread it would never."""
    assert (count_iterations(1, 40, 2, step=1, name="uneven") == 1).all()


def test_several_callers_at_once_each_get_their_own_result() -> None:
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(20):
            if not (count_iterations(200, 3 + number, 1 + number) == 200).all():
                wrong.append(number)
            if not (count_iterations(50, 30 + number, 2, step=2) == 50).all():
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_there_are_no_more_workers_than_any_caller_asked_for() -> None:
    """Callers count as threads themselves, so several of them need no more."""
    printed = run_program(
        "callers = [threading.Thread(target=count_iterations, args=(3000, 9, 4)) for _ in '1234']\n"
        "for caller in callers: caller.start()\n"
        "for caller in callers: caller.join()\n"
        "print(len(workers()))\n"
    )
    assert 1 <= int(printed) <= max(available_cores(), 4) - 1


def test_a_pool_starts_no_thread_before_it_is_needed() -> None:
    assert run_program("count_iterations(1, 9, 1); print(len(workers()))") == "0"
    assert run_program("count_iterations(1, 9, 3); print(len(workers()))") == "2"


def test_workers_leave_signals_to_other_threads() -> None:
    printed = run_program(
        "count_iterations(1, 9, 2)\n"
        "status = (workers()[0] / 'status').read_text()\n"
        "blocked = int(status.split('SigBlk:')[1].split()[0], 16)\n"
        "names = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1)\n"
        "print(all(blocked >> (n - 1) & 1 for n in names), signal.pthread_sigmask(0, ()))\n"
    )
    assert printed == "True set()"


FORK = """
def child():
    before = len(workers())
    right = all((count_iterations(300, 11, n) == 300).all() for n in (2, 3))
    os._exit(0 if right and (before, len(workers())) == (0, 2) else 1)

def forked():
    pid = os.fork()
    if pid == 0:
        child()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""


def test_a_forked_child_has_a_pool_of_its_own() -> None:
    printed = run_program(
        FORK + "assert (count_iterations(100, 9, 2) == 100).all()\n"
        "codes = {forked() for _ in range(5)}\n"
        "print(codes, (count_iterations(100, 9, 2) == 100).all(), len(workers()))\n"
    )
    assert printed == "{0} True 1"


def test_a_fork_amid_launches_of_another_thread() -> None:
    printed = run_program(
        FORK + "ended, results = threading.Event(), []\n"
        "count_iterations(1, 9, 3, step=1)\n"  # so that no child finds the compiler in use
        "def call():\n"
        "    while not ended.is_set():\n"
        "        results.append((count_iterations(50, 9, 3) == 50).all())\n"
        "caller = threading.Thread(target=call)\n"
        "caller.start()\n"
        "codes = {forked() for _ in range(20)}\n"
        "ended.set()\n"
        "caller.join()\n"
        "print(codes, all(results))\n"
    )
    assert printed == "{0} True"


def test_a_process_ends_while_its_pool_works() -> None:
    run_program(
        "caller = threading.Thread(target=count_iterations, args=(1 << 40, 9, 3), daemon=True)\n"
        "caller.start()\n"
        "count_iterations(1000, 9, 2)\n"
    )


def test_without_memory_for_threads_the_caller_does_all() -> None:
    """A stack of a thread has 8 MB; the limit leaves room for none."""
    printed = run_program(
        "from compiler.backends.cpu.runtime.pool import launch_address\n"
        "count_iterations(1, 9, 1)\n"
        "size = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 20), -1))\n"
        "print((count_iterations(100, 9, 4) == 100).all(), len(workers()))\n"
    )
    assert printed == "True 0"


def parallel_matmul() -> Schedule:
    schedule = Schedule(ops.matmul(96, 96, 96))
    schedule.parallel(schedule.get_loops(schedule.get_block("C"))[0])
    return schedule


def test_kernels_are_closed_while_others_run() -> None:
    a, b = (np.random.default_rng(s).random((96, 96), "float32") for s in (0, 1))
    stays = build(parallel_matmul(), "cpu -num-cores=2")
    wrong: list[float] = []
    ended = threading.Event()

    def call() -> None:
        c = np.empty((96, 96), "float32")
        while not ended.is_set():
            stays(a, b, c, num_threads=2)
            if not np.allclose(c, a @ b, rtol=1e-4):
                wrong.append(float(np.abs(c - a @ b).max()))

    caller = threading.Thread(target=call)
    caller.start()
    c = np.empty((96, 96), "float32")
    for _ in range(10):
        goes = build(parallel_matmul(), "cpu -num-cores=2")
        goes(a, b, c, num_threads=2)
        goes.close()
        np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    ended.set()
    caller.join()
    assert not wrong


def test_a_prepared_call_outlives_its_module() -> None:
    a, b = (np.random.default_rng(s).random((96, 96), "float32") for s in (0, 1))
    c = np.empty((96, 96), "float32")
    module = build(parallel_matmul(), "cpu -num-cores=2")
    run = module.bind(a, b, c, num_threads=2)
    module.close()
    run()
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    with pytest.raises(ArgumentError, match="was closed"):
        module(a, b, c)


@pytest.mark.parametrize("threads", [1, 2, 3, 100])
def test_a_call_says_how_many_threads_it_uses_at_most(threads: int) -> None:
    a, b = (np.random.default_rng(s).random((96, 96), "float32") for s in (0, 1))
    c = np.empty((96, 96), "float32")
    build(parallel_matmul(), "cpu -num-cores=3")(a, b, c, num_threads=threads)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


def test_a_call_without_threads_is_refused() -> None:
    module = build(ops.relu(8), "cpu -num-cores=2")
    with pytest.raises(ArgumentError, match="num_threads is 0: expected 1 or more"):
        module(np.ones(8, "float32"), np.ones(8, "float32"), num_threads=0)


def test_a_module_uses_the_cores_there_are() -> None:
    assert build(ops.matmul(96, 96, 96), "cpu -num-cores=4").num_threads == 1
    parallel = build(parallel_matmul(), "cpu -num-cores=4")
    assert parallel.artifact.num_threads == 4
    assert parallel.num_threads == min(4, available_cores())
