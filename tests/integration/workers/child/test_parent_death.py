"""Whoever measures may be killed with no chance to clean up; nothing must be left behind."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.faults.processes import survivors
from tests.patience import PATIENCE_SECS

RUNNER = """
    from tests.faults.requests import CHILD, fault, request
    from workers.child.runner import ChildRunner

    def measure():
        list(ChildRunner(child_module=CHILD).measure(request(fault("hang"))))
"""
ENGINE = """
    from tests.faults.requests import DEFAULT_TRACE, request
    from workers.engine.dask_engine import DaskEngine

    def measure():
        engine = DaskEngine.embedded(1)
        while True:
            list(engine.measure(request(*[DEFAULT_TRACE] * 8)))
"""
MAIN = """
    import threading, time
    import psutil

    if __name__ == "__main__":
        threading.Thread(target=measure, daemon=True).start()
        while not any("child" in " ".join(p.cmdline()) for p in descendants()):
            time.sleep(0.05)
        time.sleep(0.5)
        print(*(p.pid for p in descendants()), flush=True)
        time.sleep(600)
"""
DESCENDANTS = """
    def descendants():
        return psutil.Process().children(recursive=True)
"""


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[str]]:
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("measure", "at_least"), [(RUNNER, 1), (ENGINE, 2)])
def test_kill_9_of_the_parent_leaves_no_process(measure: str, at_least: int) -> None:
    program = "\n".join(map(textwrap.dedent, (measure, DESCENDANTS, MAIN)))
    with running(program) as parent:
        assert parent.stdout is not None
        line = parent.stdout.readline()
        family = [psutil.Process(int(pid)) for pid in line.split()]
        assert len(family) >= at_least
        parent.kill()
        parent.wait()
        alive = survivors(family, timeout_secs=PATIENCE_SECS)
    for process in alive:
        process.kill()
    assert not alive
