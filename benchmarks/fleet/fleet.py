"""A simulated fleet: the real service around simulated workers."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psutil

from benchmarks.fleet import recorded
from benchmarks.fleet.processes import Processes
from compiler.backends.backend import host_targets
from examples.serving import free_port, wait_for
from service.intake.request_validation import read_workload
from service.store import targets, workloads
from service.store.database import session_locks
from service.store.database.database import Database, open_database
from service.store.jobs import jobs
from service.store.jobs.jobs import NewJob
from service.wire.requests import Strategy, Workload
from tests import postgres
from workers.engine import certificates

_MAX_TRIALS = 1_000_000
"""More than a run can measure, so that no job ends."""
OWNERS = ("many", "few")
"""The owners of the jobs: three quarters belong to the first."""
_START_SECS = 300.0
_NICENESS = 10
"""That of the simulated workers, as coordinators have, and of the sessions of both: `unshare` leads
that of a coordinator, which sets only its own niceness. Chosen.
"""


@dataclass(frozen=True)
class Size:
    """The size of a fleet, and what it does.

    Attributes:
        secs: The length of the measured window.
        hosts: The processes that hold the workers.
        trial_secs: The mean time of a trial.
        kill_secs: The interval at which a host and a coordinator are killed.
    """

    workers: int
    jobs: int
    secs: float
    coordinators: int
    hosts: int
    trial_secs: float
    kill_secs: float
    strategy: Strategy

    @property
    def seats(self) -> int:
        """The jobs of a coordinator: one can run all, with the job of high priority."""
        return self.jobs + 1


class Fleet:
    """The processes of a fleet and their database."""

    def __init__(self, size: Size, folder: Path, database: Database, postmaster: int) -> None:
        self.size = size
        self.database = database
        self.folder = folder
        environment = {**os.environ, "LOOPWRIGHT_BASELINES": "none", "TMPDIR": str(folder)}
        self.processes = Processes(folder, {**environment, "OMP_NUM_THREADS": "1"})
        self.processes.watch("database", postmaster)
        self._gate = folder / "gate"
        self.url = f"tls://127.0.0.1:{free_port()}"
        self.api_url = f"http://127.0.0.1:{free_port()}"
        self.hosts: dict[int, int] = {}  # by number, their process
        self.coordinators: list[int] = []
        self.job_ids: list[UUID] = []
        outcomes = recorded.outcomes()
        (folder / "outcomes.json").write_text(json.dumps(outcomes))
        self._workloads = [
            read_workload(Workload(script=program)) for program in sorted(outcomes)[: size.jobs]
        ]
        certificates.make(folder / "cluster")

    def submit(self, number: int, priority: int = 0) -> UUID:
        """Queue a job."""
        workload, target = self._workloads[number % len(self._workloads)], host_targets()[0]
        with self.database.write() as session:
            workloads.ensure(session, workload)
            targets.ensure(session, target.name, target.label)
            job = NewJob(
                workload_key=workload.key,
                workload_name=workload.name,
                target=target.name,
                max_trials=_MAX_TRIALS,
                seed=number,
                strategy=self.size.strategy,
                owner=OWNERS[number % 4 == 3],
                priority=priority,
            )
            return jobs.submit(session, job).id

    def start_service(self) -> None:
        """Start the scheduler, the coordinators and the API; wait for the API."""
        host, port = self.url.removeprefix("tls://").split(":")
        address = ["--host", host, "--port", port]
        self._start("scheduler", "scheduler", *address, *self._certificates)
        port = self.api_url.rpartition(":")[2]
        api = self._start("api", "api", "--db", self.database.url, "--port", port)
        for _ in range(self.size.coordinators):
            self.start_coordinator()
        wait_for(self.api_url, self.processes.popen(api))

    def start_coordinator(self) -> None:
        """Start a coordinator, in a process namespace of its own as on another host."""
        command = ("coordinator", "--db", self.database.url, "--scheduler", self.url)
        seats = ("--jobs", str(self.size.seats))
        prefix = ("unshare", "--pid", "--fork", "--mount-proc") if os.geteuid() == 0 else ()
        words = [sys.executable, "-m", "loopwright", *command, *seats, *self._certificates]
        pid = self.processes.start("coordinator", [*prefix, *words], session_niceness=_NICENESS)
        self.coordinators.append(pid)

    def num_coordinators(self) -> int:
        """Return how many coordinators claim jobs."""
        with self.database.read() as session:
            return len(session_locks.held(session))

    def machine_of(self, coordinator: int) -> str:
        """Return the end of the machine's name in the leases of a coordinator."""
        below = psutil.Process(coordinator).children() or [psutil.Process(coordinator)]
        return Path(f"/proc/{below[0].pid}/ns/pid").readlink().name.strip("pid:[]")

    def start_host(self, number: int) -> None:
        """Start a process with its share of the workers."""
        first, end = (self.size.workers * n // self.size.hosts for n in (number, number + 1))
        settings = {
            "url": self.url,
            "certificates": str(self.folder / "cluster"),
            "label": host_targets()[0].label,
            "first": first,
            "count": end - first,
            "trial_secs": self.size.trial_secs,
            "outcomes": str(self.folder / "outcomes.json"),
            "report": str(self.folder / f"report-{number}"),
            "gate": str(self._gate),
            "ready": str(self._ready_of(number)),
        }
        module = "benchmarks.fleet.simulated_workers"
        # They stand for other hosts, and must not take this one's processor from the service.
        command = ["nice", "-n", str(_NICENESS), sys.executable, "-m", module, json.dumps(settings)]
        pid = self.processes.start("workers", command, session_niceness=_NICENESS)
        self.hosts[number] = pid

    def open_gate(self) -> None:
        """Let the workers of the hosts that wait connect; later ones connect when they start."""
        self._gate.touch()

    def close_gate(self) -> None:
        """Let the workers of the next hosts wait until the gate is opened."""
        self._gate.unlink()

    def is_ready(self, number: int) -> bool:
        """Return whether a host waits to connect, or did."""
        return self._ready_of(number).exists()

    def kill_host(self, number: int) -> None:
        """Kill a process with its workers, and start it again."""
        self.processes.kill(self.hosts.pop(number))
        self.start_host(number)

    def reports(self) -> list[dict[str, object]]:
        """Return the reports of all hosts; a killed one may have cut its last line."""
        found = []
        for path in sorted(self.folder.glob("report-*")):
            for line in path.read_text().splitlines():
                try:
                    found.append({**json.loads(line), "host": path.name})
                except ValueError:
                    continue
        return found

    def _ready_of(self, number: int) -> Path:
        return self.folder / f"ready-{number}"

    @property
    def _certificates(self) -> tuple[str, str]:
        return "--certificates", str(self.folder / "cluster")

    def _start(self, role: str, *words: str) -> int:
        return self.processes.start(role, [sys.executable, "-m", "loopwright", *words])


@contextmanager
def running(size: Size, folder: Path) -> Iterator[Fleet]:
    """Start PostgreSQL and the fleet's service with its jobs; end all of it after the body."""
    programs = postgres.find_programs()
    if programs is None:
        raise SystemExit("this benchmark requires PostgreSQL: apt install postgresql")
    settings = ("max_connections=400", "shared_buffers=256MB", "track_commit_timestamp=on")
    with (
        postgres.serving(programs, settings=settings) as server,
        closing(open_database(server.url)) as database,
    ):
        fleet = Fleet(size, folder, database, server.pid)
        try:
            fleet.start_service()
            # Jobs that are queued before would all belong to the coordinator that comes first.
            wait_until(lambda: fleet.num_coordinators() == size.coordinators)
            fleet.job_ids = [fleet.submit(number) for number in range(size.jobs)]
            yield fleet
        finally:
            fleet.processes.stop()


def wait_until(is_true: Callable[[], bool], secs: float = _START_SECS) -> bool:
    """Wait until a condition holds; return whether it did in time."""
    end = time.monotonic() + secs
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
