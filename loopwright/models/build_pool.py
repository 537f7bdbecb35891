"""Build the kernels of many tasks on all cores: in this process, and in others."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import IO

from compiler.backends.error import BuildError
from compiler.executor.cores import available_cores
from loopwright.models.schedules import ProposedKernel, propose_kernel
from tuner.space.own_rules import own_rules
from tuner.task import Task
from workers.child.child_environment import child_environment

MIN_TASKS = 4
"""Tasks for each further process: it loads for about as long as two tasks take. Chosen."""


def propose_kernels(
    tasks: Mapping[str, Task], cost_model: bytes, seed: int
) -> dict[str, ProposedKernel]:
    """Return a kernel for each task, by its name; they do not depend on the number of cores.

    Args:
        tasks: The tasks by the names of their kernels.
        cost_model: The stored model that chooses.
        seed: Of the choices.

    Raises:
        BuildError: If a task can't be built at all.
    """
    return _Builds(tasks, cost_model, seed).run()


class _Builds:
    """The tasks that are not begun, and the kernels so far."""

    def __init__(self, tasks: Mapping[str, Task], cost_model: bytes, seed: int) -> None:
        self._cost_model, self._seed = cost_model, seed
        self._tasks = tasks
        # The largest first: no process is left with a long one at the end.
        self._waiting = sorted(tasks, key=lambda name: tasks[name].flops)
        self._kernels: dict[str, ProposedKernel] = {}
        self._lock = threading.Lock()

    def run(self) -> dict[str, ProposedKernel]:
        """Build all of them, and return them in the order of the tasks."""
        num_children = min(available_cores(), 1 + len(self._tasks) // MIN_TASKS) - 1
        if own_rules():
            num_children = 0  # other processes do not have the rules that were added to this one
        with ThreadPoolExecutor(max_workers=max(1, num_children)) as pool:
            children = [pool.submit(self._in_child) for _ in range(num_children)]
            try:
                self._here()
                for child in children:
                    child.result()
                self._here()  # what a child left
            except BaseException:
                with self._lock:
                    self._waiting.clear()
                raise
        return {name: self._kernels[name] for name in self._tasks}

    def _names(self) -> Iterator[str]:
        """Yield tasks to begin until none is left."""
        while True:
            with self._lock:
                if not self._waiting:
                    return
                name = self._waiting.pop()
            yield name

    def _here(self) -> None:
        for name in self._names():
            self._kernels[name] = propose_kernel(
                self._tasks[name], name, seed=self._seed, cost_model=self._cost_model
            )

    def _in_child(self) -> None:
        name: str | None = None
        with _child() as (requests, answers):
            try:
                pickle.dump(self._cost_model, requests)
                for name in self._names():
                    pickle.dump((self._tasks[name], name, self._seed), requests)
                    requests.flush()
                    answer: ProposedKernel | BuildError = pickle.load(answers)
                    if isinstance(answer, BuildError):
                        raise answer
                    self._kernels[name] = answer
            except (BrokenPipeError, EOFError, pickle.UnpicklingError):
                # The process died: what it was to build is built in this one.
                if name is not None:
                    with self._lock:
                        self._waiting.append(name)


@contextmanager
def _child() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Start a process, and return its input and its output; it ends with the block.

    Ctrl-C reaches this process alone. A process that outlives this one ends with its input.
    """
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "loopwright.models.build_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=child_environment(os.environ),
        process_group=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdin, process.stdout
    finally:
        process.kill()  # it may be in the middle of a build
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        process.wait()
