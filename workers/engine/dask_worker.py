"""The code in an engine's worker process: one runner, which owns one child.

Dask imports this module in each worker it starts (`preload`). Batches come and answers go as text
(`workers.engine.batch_runner`), and so do the steps of sessions (`workers.engine.dask_sessions`).
"""

from __future__ import annotations

import asyncio
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

from compiler.backends.backend import backend_of, device_of_process
from compiler.backends.host_device import HostDevice
from compiler.executor.cores import available_cores
from compiler.runtime.measurement import Measurement
from workers.child.parent_death import die_with_parent
from workers.child.runner import ChildRunner
from workers.child.supervisor import ChildStartError
from workers.engine import batch_protocol
from workers.engine.batch_runner import BatchRunner
from workers.engine.unpickling import restrict_dask
from workers.health.health import WorkerHealth
from workers.health.self_test import SelfTest, SelfTestError, self_test
from workers.logs import configure_logs
from workers.measure.compare import BATCH_SECS, CompareRequest
from workers.remote.sessions import RemoteSessions, SessionError, start_device
from workers.wire import answers
from workers.wire.remote_step import RemoteStep, encoded
from workers.wire.request import MeasureRequest

SESSIONS = "has_sessions"
"""The fact of a worker that says whether clients may have remote sessions with it."""
_STATE_SECS = 5.0
"""Seconds for which the state of a device is valid; Dask asks for it twice a second. Chosen."""

_log = structlog.get_logger()


class DaskWorker:
    """The runner of this process, None while it refuses work; and its description.

    Args:
        idle_secs: The time without work after which the child is ended, to free its memory.
    """

    def __init__(self, idle_secs: float = 15.0) -> None:
        self._device: HostDevice | None = None
        self._state: dict[str, Any] = {}
        self._state_until = 0.0
        self.runner: ChildRunner | None = None
        self.facts: dict[str, Any] = {}
        self.health: WorkerHealth | None = None
        self._idle_secs = idle_secs
        self._idle_timer: threading.Timer | None = None
        self._sessions = RemoteSessions(start_device)

    def open(self, worker: str, device: HostDevice | None = None) -> None:
        """Test this host, and accept work if it passes.

        Args:
            worker: The name under which measurements are reported.
            device: The device to measure on; None for the cores of the CPU.
        """
        self._device = device
        self.facts = {
            "protocol": batch_protocol.PROTOCOL,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "num_cores": _num_cores(device),
            "versions": {
                "distributed": version("distributed"),
                "python": platform.python_version(),
            },
        }
        self.facts[SESSIONS] = device is None or device.target.kind == "cpu"
        if self._device is not None:
            self.facts["device"] = self._device_facts()
        runner = ChildRunner(worker=worker, device=self._device)
        try:
            tested = self_test(runner)
            self.facts["self_test"] = asdict(tested)
            if lacks := runner.host().lacks:
                self.facts["lacks"] = list(lacks)
                _log.warning("the isolation of candidates is incomplete", lacks=lacks)
            self.runner = runner
            self.health = self._health(runner, tested)
            self._release_later()
        except (SelfTestError, ChildStartError) as error:
            self.facts["refuses"] = str(error)
            runner.close()

    def report(self) -> dict[str, Any]:
        """Return the facts that change while it works."""
        device = {} if self._device is None else {"device": self._device_facts()}
        return device if self.health is None else {**self.health.report(), **device}

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

    def remote_step(self, step: RemoteStep) -> dict[str, str]:
        """Take a step of a remote session; return its answer, or why there is none."""
        if not self.facts.get(SESSIONS):
            return {"refused": "this worker has no remote sessions: they are on CPUs"}
        try:
            match step.act:
                case "open":
                    return {"session": self._sessions.open(step.owner)}
                case "frame":
                    answer = self._sessions.step(step.session, step.owner, step.frame_bytes())
                    return {"frame": encoded(answer)}
                case "close":
                    self._sessions.close(step.session, step.owner)
                    return {"session": step.session}
        except SessionError as error:
            return {"refused": str(error)}

    def close(self) -> None:
        """End the children."""
        self._sessions.close_all()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self.runner is not None:
            self.runner.close()

    def _health(self, runner: ChildRunner, tested: SelfTest) -> WorkerHealth:
        if self._device is None:
            return WorkerHealth(runner.measure, tested)
        # The time of an emulated GPU is an estimate, which never varies.
        target = self._device.target.name if self._device.uuid else None
        return WorkerHealth(runner.measure, tested, target=target, measure_peak=dict)

    def _device_facts(self) -> dict[str, Any]:
        assert self._device is not None
        if time.monotonic() >= self._state_until:
            self._state = backend_of(self._device.target).device_state(self._device)
            self._state_until = time.monotonic() + _STATE_SECS
        return {
            "name": self._device.name,
            "product": self._device.product,
            "uuid": self._device.uuid,
            "is_emulated": self._device.target.is_emulated,
            **self._state,
        }

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


def _num_cores(device: HostDevice | None) -> int:
    """Return the cores that a kernel may use: of another machine, those that its target names."""
    is_elsewhere = device is not None and device.target.kind == "cpu"
    return device.target.num_cores if device and is_elsewhere else available_cores()


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


ACTS = {"measure": measure_batch, "compare": compare_batch}


def remote_step(step: str) -> str:
    """Take a step of a session that is JSON text; return an answer of `workers.wire.answers`."""
    return answers.write(lambda: _slot.remote_step(RemoteStep.from_json(json.loads(step))))


def dask_setup(worker: Any) -> None:
    """Prepare the worker before it connects to the scheduler."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker has a nanny above it"
    assert parent.pid is not None
    die_with_parent(parent.pid)
    configure_logs()
    restrict_dask()
    _slot.open(f"{socket.gethostname()}/{worker.name}", device_of_process())

    async def facts(_: Any) -> dict[str, Any]:
        return _slot.facts

    def report(_: Any) -> dict[str, Any]:
        return _slot.report()

    async def answer(act: str, request: str) -> str:
        loop = asyncio.get_running_loop()
        # One thread, and this process's own runner: one batch at a time.
        return await loop.run_in_executor(worker.executors["default"], ACTS[act], request)

    worker.startup_information[batch_protocol.FACTS] = facts
    worker.metrics[batch_protocol.FACTS] = report
    BatchRunner(worker, answer)


def dask_teardown(worker: Any) -> None:
    """End the child with the worker."""
    _slot.close()
