"""The code in an engine's worker process: one runner, which owns one child.

Dask imports this module in each worker it starts (`preload`) and calls `measure_batch` and
`compare_batch` there. Only text crosses between processes.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import structlog

from compiler.runtime.measurement import Measurement
from compiler.target.cores import available_cores
from workers.child.parent_death import die_with_parent
from workers.child.runner import ChildRunner, ChildStartError
from workers.engine.unpickling import restrict_dask
from workers.health.health import WorkerHealth
from workers.health.self_test import SelfTestError, self_test
from workers.logs import configure_logs
from workers.measure.compare import BATCH_SECS, CompareRequest
from workers.wire import answers
from workers.wire.request import MeasureRequest

FACTS = "loopwright"

_log = structlog.get_logger()


class DaskWorker:
    """The runner of this process, None while it refuses work; and its description.

    Args:
        idle_secs: The time without work after which the child is ended, to free its memory.
    """

    def __init__(self, idle_secs: float = 15.0) -> None:
        self.runner: ChildRunner | None = None
        self.facts: dict[str, Any] = {}
        self.health: WorkerHealth | None = None
        self._idle_secs = idle_secs
        self._idle_timer: threading.Timer | None = None

    def open(self, worker: str) -> None:
        """Test this host, and accept work if it passes."""
        self.facts = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "num_cores": available_cores(),
            "versions": {
                "distributed": version("distributed"),
                "python": platform.python_version(),
            },
        }
        runner = ChildRunner(worker=worker)
        try:
            tested = self_test(runner)
            self.facts["self_test"] = asdict(tested)
            if lacks := runner.host().lacks:
                self.facts["lacks"] = list(lacks)
                _log.warning("the isolation of candidates is incomplete", lacks=lacks)
            self.runner, self.health = runner, WorkerHealth(runner.measure, tested)
            self._release_later()
        except (SelfTestError, ChildStartError) as error:
            self.facts["refuses"] = str(error)
            runner.close()

    def measure(self, request: MeasureRequest) -> list[Measurement]:
        """Measure a request; return its measurements in order.

        Raises:
            SelfTestError: If the slot refuses work.
        """
        with self._working(request) as runner:
            return [measurement for _, measurement in runner.measure(request)]

    def compare(self, request: CompareRequest) -> list[list[Measurement]]:
        """Measure the first rounds of a request: at least one, and more within a short time.

        Raises:
            SelfTestError: If the slot refuses work.
        """
        rounds: list[list[Measurement]] = []
        end = time.monotonic() + BATCH_SECS
        with self._working(request) as runner:
            for batch in runner.compare_in_batches(request):
                rounds += batch
                if rounds and time.monotonic() > end:
                    break
        return rounds

    def close(self) -> None:
        """End the child."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self.runner is not None:
            self.runner.close()

    @contextmanager
    def _working(self, request: MeasureRequest | CompareRequest) -> Iterator[ChildRunner]:
        if self.runner is None or self.health is None:
            raise SelfTestError(self.facts.get("refuses", "this worker was not set up"))
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        details = {"candidates": len(request.traces), "request_id": request.request_id}
        _log.info("measuring", **details)
        try:
            with self.health.working_on(request):
                yield self.runner
        except Exception:
            _log.warning("not measured", **details, exc_info=True)
            raise
        finally:
            self._release_later()

    def _release_later(self) -> None:
        self._idle_timer = threading.Timer(self._idle_secs, self._release_idle)
        self._idle_timer.daemon = True
        self._idle_timer.start()

    def _release_idle(self) -> None:
        if self.runner is not None and self.health is not None:
            self.health.sample_when_idle()
            self.runner.release()


_slot = DaskWorker()


def measure_batch(request: str) -> str:
    """Measure a request that is JSON text; return an answer of `workers.wire.answers`."""
    return answers.write(
        lambda: [
            measurement.to_json()
            for measurement in _slot.measure(MeasureRequest.from_json(json.loads(request)))
        ]
    )


def compare_batch(request: str) -> str:
    """Measure the first rounds of a comparison; return an answer of `workers.wire.answers`."""
    return answers.write(
        lambda: [
            [measurement.to_json() for measurement in measured]
            for measured in _slot.compare(CompareRequest.from_json(json.loads(request)))
        ]
    )


def dask_setup(worker: Any) -> None:
    """Prepare the worker before it connects to the scheduler."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a nanny above it"
    assert parent.pid is not None
    die_with_parent(parent.pid)
    configure_logs()
    restrict_dask()
    _slot.open(f"{socket.gethostname()}/{worker.name}")

    async def facts(_: Any) -> dict[str, Any]:
        return _slot.facts

    def health(_: Any) -> dict[str, Any]:
        return {} if _slot.health is None else _slot.health.report()

    worker.startup_information[FACTS] = facts
    worker.metrics[FACTS] = health


def dask_teardown(worker: Any) -> None:
    """End the child with the worker."""
    _slot.close()
