"""What runs inside an engine's worker process: one runner, which has one child.

Dask imports this module in each worker it starts (`preload`) and calls `measure_batch` there; only
text crosses between processes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import socket
import threading
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from compiler.runtime.measurement import Measurement
from workers.parent_death import die_with_parent
from workers.request import MeasureRequest
from workers.runner import ChildRunner, ChildStartError
from workers.self_test import SelfTestError, self_test

FACTS = "loopwright"


class Slot:
    """The runner of this process, None while it refuses work; and what is told of it.

    Args:
        idle_secs: After how long without work the child is ended, for its memory.
    """

    def __init__(self, idle_secs: float = 15.0) -> None:
        self.runner: ChildRunner | None = None
        self.facts: dict[str, Any] = {}
        self._idle_secs = idle_secs
        self._rest: threading.Timer | None = None

    def open(self, worker: str) -> None:
        """Test this host, and take work if it passes."""
        self.facts = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "versions": {
                "distributed": version("distributed"),
                "python": platform.python_version(),
            },
        }
        runner = ChildRunner(worker=worker)
        try:
            self.facts["self_test"] = asdict(self_test(runner))
            self.runner = runner
            self._rest_later()
        except (SelfTestError, ChildStartError) as error:
            self.facts["refuses"] = str(error)
            runner.close()

    def measure(self, request: MeasureRequest) -> list[Measurement]:
        """Measure a request; return its measurements in order.

        Raises:
            SelfTestError: If the slot refuses work.
        """
        if self.runner is None:
            raise SelfTestError(self.facts.get("refuses", "this worker was not set up"))
        if self._rest is not None:
            self._rest.cancel()
        try:
            return [measurement for _, measurement in self.runner.measure(request)]
        finally:
            self._rest_later()

    def close(self) -> None:
        """End the child."""
        if self._rest is not None:
            self._rest.cancel()
        if self.runner is not None:
            self.runner.close()

    def _rest_later(self) -> None:
        assert self.runner is not None
        self._rest = threading.Timer(self._idle_secs, self.runner.rest)
        self._rest.daemon = True
        self._rest.start()


_slot = Slot()


def measure_batch(request: str) -> str:
    """Measure a request that is JSON text; return its measurements, in order, as JSON text.

    Raises:
        SelfTestError: If the worker refuses work.
    """
    found = _slot.measure(MeasureRequest.from_json(json.loads(request)))
    return json.dumps([measurement.to_json() for measurement in found])


def dask_setup(worker: Any) -> None:
    """Get ready before the worker offers itself to the scheduler."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a nanny above it"
    assert parent.pid is not None
    die_with_parent(parent.pid)
    _slot.open(f"{socket.gethostname()}/{worker.name}")

    async def facts(_: Any) -> dict[str, Any]:
        return _slot.facts

    worker.startup_information[FACTS] = facts


def dask_teardown(worker: Any) -> None:
    """End the child with the worker."""
    _slot.close()
