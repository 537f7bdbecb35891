"""Simulated workers of a cluster, many in one process: real workers of Dask without kernels.

They speak the real protocol with the real scheduler. Only what measures is replaced: it sleeps, and
answers from the recorded sets. The module runs until SIGTERM or a kill; its one
argument is JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dask
from distributed import Worker

from benchmarks.fleet.recorded import RecordedAnswers
from workers.engine import certificates
from workers.engine.batch_protocol import FACTS, PROTOCOL
from workers.engine.batch_runner import BatchRunner
from workers.engine.dask_settings import SETTINGS
from workers.engine.unpickling import restrict_dask

_REPORT_SECS = 1.0
_LOOK_SECS = 0.05
_QUIET = {
    # Each would run for each worker, where a host has one or few.
    "distributed.admin.tick.interval": "60s",
    "distributed.admin.system-monitor.interval": "60s",
}


@dataclass
class WorkClock:
    """The work of one worker: its busy time, and the gaps between its batches."""

    started_at: float
    busy_since: float | None = None
    idle_since: float | None = None
    first_secs: float | None = None
    busy_secs: float = 0.0
    gaps: list[float] = field(default_factory=list)

    def begin(self, now: float) -> None:
        """Note the begin of a batch."""
        if self.first_secs is None:
            self.first_secs = now - self.started_at
        if self.idle_since is not None:
            self.gaps.append(now - self.idle_since)
        self.busy_since = now

    def end(self, now: float) -> None:
        """Note the end of a batch."""
        assert self.busy_since is not None
        self.busy_secs += now - self.busy_since
        self.busy_since, self.idle_since = None, now

    def take(self, now: float) -> tuple[float, list[float]]:
        """Return the busy seconds and the gaps since the last call."""
        if self.busy_since is not None:
            self.busy_secs += now - self.busy_since
            self.busy_since = now
        taken = self.busy_secs, self.gaps
        self.busy_secs, self.gaps = 0.0, []
        return taken


class SimulatedWorkers:
    """The workers of a process and their clocks.

    Args:
        settings: `url`, `certificates`, `label`, `first` and `count` of the workers, `trial_secs`,
            `outcomes` (a file of JSON) and `report` (a file to append to). `gate` is a file without
            which they do not connect, and `ready` one to write once only that is left.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        recorded = json.loads(Path(settings["outcomes"]).read_text())
        self._answers = RecordedAnswers(recorded, settings["trial_secs"])
        self._clocks: dict[str, WorkClock] = {}
        self._num_answered = 0

    async def work(self) -> None:
        """Run the workers until SIGTERM."""
        is_over = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, is_over.set)
        Path(self._settings["ready"]).touch()
        gate = Path(self._settings["gate"])
        while not gate.exists():
            await asyncio.sleep(_LOOK_SECS)
        first, count = self._settings["first"], self._settings["count"]
        workers = [self._worker(f"s{number}") for number in range(first, first + count)]
        await asyncio.gather(*(worker.start() for worker in workers))
        with open(self._settings["report"], "a", encoding="utf-8") as report:
            while not is_over.is_set():
                await asyncio.sleep(_REPORT_SECS)
                report.write(json.dumps(self._report()) + "\n")
                report.flush()
        os._exit(0)  # a thousand farewells would take longer than the measurement is worth

    def _worker(self, name: str) -> Worker:
        worker = Worker(
            self._settings["url"],
            name=name,
            nthreads=1,
            memory_limit=0,
            resources={self._settings["label"]: 1},
            security=certificates.read(Path(self._settings["certificates"])),
            protocol="tls",
            host="127.0.0.1",
            dashboard=False,
        )
        self._clocks[name] = WorkClock(time.monotonic())

        async def facts(_: object) -> dict[str, Any]:
            return {"protocol": PROTOCOL, "host": "simulated", "pid": os.getpid(), "num_cores": 1}

        def health(_: object) -> dict[str, Any]:
            is_busy = self._clocks[name].busy_since is not None
            details = {"workload": "", "target": "", "candidates": 1, "since": time.time()}
            return {"task": details if is_busy else None, "utilisation": 1.0 if is_busy else 0.0}

        worker.startup_information[FACTS] = facts
        worker.metrics[FACTS] = health
        BatchRunner(worker, partial(self._measure, name))
        return worker

    async def _measure(self, name: str, _: str, text: str) -> str:
        request = json.loads(text)
        clock = self._clocks[name]
        clock.begin(time.monotonic())
        await asyncio.sleep(self._answers.secs(request))
        self._num_answered += 0 if "num_rounds" in request else len(request["traces"])
        clock.end(time.monotonic())
        return self._answers.answer(request, f"simulated/{name}")

    def _report(self) -> dict[str, Any]:
        taken = [clock.take(time.monotonic()) for clock in self._clocks.values()]
        firsts = [clock.first_secs for clock in self._clocks.values()]
        return {
            "at": time.time(),
            "workers": len(self._clocks),
            "busy_secs": sum(busy_secs for busy_secs, _ in taken),
            "gaps": [round(gap, 4) for _, gaps in taken for gap in gaps],
            "answered": self._num_answered,
            "first_secs": None if None in firsts else max(filter(None, firsts), default=None),
        }


def main() -> None:
    """Run the workers of the settings that the command names."""
    restrict_dask()
    with dask.config.set({**SETTINGS, **_QUIET}):
        asyncio.run(SimulatedWorkers(json.loads(sys.argv[1])).work())


if __name__ == "__main__":
    main()
