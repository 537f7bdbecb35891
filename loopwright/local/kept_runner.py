"""The child of `lw.tune`, kept for the next call: a new one takes half a second to start.

A child that is idle for `IDLE_SECS` is ended, to free its memory. A runner serves one call at a
time; calls at the same time have one each. On a device nothing is kept: other processes may wait
for its memory.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from compiler.backends.host_device import HostDevice
from workers.child.runner import ChildRunner

IDLE_SECS = 60.0
"""Time after which an idle child is ended: a user who tunes one workload after the other is faster.
Chosen.
"""


@contextmanager
def kept_runner(
    device: HostDevice | None,
    functions: Collection[str] = (),
    *,
    shares_builds: bool = False,
) -> Iterator[ChildRunner]:
    """Use a runner whose child has started, or is starting.

    Args:
        device: The device to measure on; None for the cores of the CPU.
        functions: The functions that candidates may call, by name.
        shares_builds: Whether children on other cores share the builds.
    """
    if device is not None or functions:
        with ChildRunner(device=device, functions=functions) as runner:
            runner.shares_builds = shares_builds
            yield runner
        return
    runner = _idle.take()
    runner.shares_builds = shares_builds
    try:
        runner.start()
        yield runner
    except BaseException:
        runner.close()  # what it was doing when this was interrupted is unknown
        raise
    _idle.keep(runner)


class _IdleRunners:
    """The runners of this process that are not used now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runners: list[tuple[ChildRunner, threading.Timer]] = []

    def take(self) -> ChildRunner:
        """Return the runner that was used last, or a new one."""
        with self._lock:
            if not self._runners:
                return ChildRunner()
            runner, timer = self._runners.pop()
        timer.cancel()
        return runner

    def keep(self, runner: ChildRunner) -> None:
        """Keep a runner for the next call, for a while."""
        timer = threading.Timer(IDLE_SECS, self._drop, (runner,))
        timer.daemon = True
        with self._lock:
            self._runners.append((runner, timer))
        timer.start()

    def close(self) -> None:
        """End all children."""
        with self._lock:
            runners, self._runners = self._runners, []
        for runner, timer in runners:
            timer.cancel()
            runner.close()

    def forget(self) -> None:
        """Forget all runners: a fork must neither use nor end the children of its parent."""
        self._lock = threading.Lock()
        self._runners = []

    def _drop(self, runner: ChildRunner) -> None:
        with self._lock:
            others = [entry for entry in self._runners if entry[0] is not runner]
            is_idle = len(others) < len(self._runners)
            self._runners = others
        if is_idle:
            runner.close()


def _forget() -> None:
    _idle.forget()


_idle = _IdleRunners()
atexit.register(_idle.close)
os.register_at_fork(after_in_child=_forget)
