"""An API and a coordinator as forks of this process, to kill and start again without an import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil

from compiler.runtime.measurement import Measurement
from service.coordinator.coordinator import Coordinator
from service.coordinator.heartbeat_measurer import Measuring
from service.processes.run_coordinator import run_coordinator
from service.processes.serve import serve
from service.store.database.database import open_database
from service.store.jobs.leases import LEASE_SECS
from tests.patience import PATIENCE_SECS
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task

LOOK_SECS = 0.05


def cost(candidate: Candidate) -> float:
    """Return a run time that is fixed for each candidate; the default is the slowest."""
    return 1.0 if candidate.sketch == DEFAULT_SKETCH else 0.1 + int(candidate.key[:4], 16) / 2**17


class NotingMeasurer(MemoryMeasurer):
    """Calculates times; notes each candidate in a file, which outlives the process."""

    def __init__(self, file: Path) -> None:
        super().__init__(cost)
        self._file = os.open(file, os.O_APPEND | os.O_CREAT | os.O_WRONLY)

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield each candidate's measurement; see `Measurer`."""
        for index, measurement in super().measure(task, candidates, incumbent_secs):
            os.write(self._file, b"%s\n" % candidates[index].key.encode())
            yield index, measurement


def wait_until(is_done: Callable[[], bool], problem: str) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_SECS
    while not is_done():
        assert time.monotonic() < deadline, problem
        time.sleep(LOOK_SECS)


@dataclass
class Part:
    """A process of the service."""

    run: Callable[[], None]
    log: Path
    pid: int = 0

    def start(self) -> None:
        """Fork this process."""
        self.pid = os.fork()
        if self.pid:
            return
        with self.log.open("ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        try:
            self.run()
        finally:
            os._exit(1)

    def processes_below(self) -> list[psutil.Process]:
        """Return its children, their children, and so on."""
        return psutil.Process(self.pid).children(recursive=True)

    def kill(self) -> None:
        """Kill it; what is below it has to end by itself."""
        below = self.processes_below()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        _, alive = psutil.wait_procs(below, timeout=PATIENCE_SECS)
        assert not alive, f"outlived its parent: {alive}"


@dataclass
class ForkedService:
    """An API and a coordinator on one database.

    Attributes:
        is_measured: Whether the coordinator has a worker; else times are calculated.
        measurer: Calculates times, and notes candidates in a file.
        lease_secs: How long a coordinator that calculates holds its jobs without a heartbeat.
    """

    folder: Path
    db_url: str
    is_measured: bool
    measurer: Callable[[Path], Measuring] = NotingMeasurer
    lease_secs: float = LEASE_SECS
    http: httpx2.Client = field(init=False)

    def __post_init__(self) -> None:
        self.api = Part(self._serve, self.folder / "api.log")
        run = self._measure if self.is_measured else self._calculate
        self.coordinator = Part(run, self.folder / "coordinator.log")

    def start_api(self) -> None:
        """Start the API on a free port, and a client of it."""
        self._address.unlink(missing_ok=True)
        self.api.start()
        wait_until(self._address.exists, "the API does not start")
        url = self._address.read_text()
        self.http = httpx2.Client(base_url=f"{url}/api/v1", timeout=PATIENCE_SECS)

    def restart_api(self) -> None:
        """Kill the API, and start it again."""
        self.http.close()
        self.api.kill()
        self.start_api()

    def restart_coordinator(self) -> None:
        """Kill the coordinator, and start it again."""
        self.coordinator.kill()
        self.coordinator.start()

    def get(self, path: str, **params: Any) -> Any:
        """Return the answer to a request."""
        return self.http.get(path, params=params).raise_for_status().json()

    @property
    def num_calculated(self) -> int:
        """The number of times that were calculated for a search, stored or not."""
        return len(self._calculated.read_text().split())

    @property
    def _address(self) -> Path:
        return self.folder / "address"

    @property
    def _calculated(self) -> Path:
        return self.folder / "calculated"

    def _serve(self) -> None:
        def announce(url: str) -> None:
            partial = self._address.with_suffix(".new")
            partial.write_text(url)
            partial.rename(self._address)

        serve(port=0, db_url=self.db_url, num_workers=None, announce=announce)

    def _measure(self) -> None:
        run_coordinator(self.db_url)

    def _calculate(self) -> None:
        with closing(open_database(self.db_url)) as database:
            measurer = self.measurer(self._calculated)
            coordinator = Coordinator(database, measurer, lease_secs=self.lease_secs)
            while True:
                if not coordinator.run_one():
                    time.sleep(LOOK_SECS)


@contextmanager
def running(
    folder: Path,
    db_url: str,
    *,
    is_measured: bool,
    measurer: Callable[[Path], Measuring] = NotingMeasurer,
    lease_secs: float = LEASE_SECS,
) -> Iterator[ForkedService]:
    """Run an API while the body runs; the body starts the coordinator."""
    service = ForkedService(folder, db_url, is_measured, measurer, lease_secs)
    service.start_api()
    try:
        yield service
    finally:
        service.http.close()
        for part in (service.api, service.coordinator):
            if part.pid:
                part.kill()
