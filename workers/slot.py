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
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from workers.parent_death import die_with_parent
from workers.request import MeasureRequest
from workers.runner import ChildRunner, ChildStartError
from workers.self_test import SelfTestError, self_test

FACTS = "loopwright"


class _Slot:
    """The runner of this process, None while it refuses work; and what is told of it."""

    def __init__(self) -> None:
        self.runner: ChildRunner | None = None
        self.facts: dict[str, Any] = {}

    def open(self, worker: str) -> None:
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
        except (SelfTestError, ChildStartError) as error:
            self.facts["refuses"] = str(error)
            runner.close()

    def close(self) -> None:
        if self.runner is not None:
            self.runner.close()


_slot = _Slot()


def measure_batch(request: str) -> str:
    """Measure a request that is JSON text; return its measurements, in order, as JSON text.

    Raises:
        SelfTestError: If the worker refuses work.
    """
    if _slot.runner is None:
        raise SelfTestError(_slot.facts.get("refuses", "this worker was not set up"))
    measured = _slot.runner.measure(MeasureRequest.from_json(json.loads(request)))
    return json.dumps([measurement.to_json() for _, measurement in measured])


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
