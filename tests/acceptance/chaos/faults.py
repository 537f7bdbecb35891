"""Faults of the services of a stack: each is chosen by a seed, and most end after some seconds."""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

import psutil
import psycopg

from tests.acceptance.chaos import shim
from tests.acceptance.chaos.history import Processes
from tests.acceptance.chaos.link import Link
from tests.acceptance.deploy.service_process import Service
from tests.acceptance.deploy.stack import Stack
from tests.patience import PATIENCE_SECS

SCHEDULER_PORT = 8786
_COORDINATORS = ("coordinator-1", "coordinator-2")
_WORKERS = ("worker-1", "worker-2")
_CONNECT_SECS = 2
"""The least that libpq accepts."""
PARTS = ("api-1", "api-2", *_COORDINATORS, "scheduler", *_WORKERS, "postgres", "proxy")


@dataclass(order=True)
class _End:
    """The end of a fault."""

    at: float
    number: int
    end: Callable[[], object] = field(compare=False)


class Injector:
    """Injects faults into a stack, whose services restart as their policy says.

    Make it before the stack starts: it adds links to the scheduler, and the library of `shim.c`.
    Without a C compiler there are no faults of disks and clocks.
    """

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.processes = Processes()
        self.counts: Counter[str] = Counter()
        self.log: list[str] = []
        self.lock = threading.Lock()
        """Held while a service is killed or started."""
        self._alive_at: dict[str, float] = {}
        self._ends: list[_End] = []
        self._links = {name: self._link(name) for name in (*_COORDINATORS, *_WORKERS)}
        self._shims = self._preload(("postgres", *_COORDINATORS))
        self._kinds: dict[str, tuple[int, Callable[[Random], str]]] = {
            "kill": (4, self._kill),
            "kill of a child": (5, self._kill_child),
            "pause": (9, self._pause),
            "pause beyond a lease": (1, self._pause_beyond_lease),
            "restart of PostgreSQL": (1, self._restart_database),
            "lost sessions": (3, self._lose_sessions),
            "partition": (5, self._partition),
        }
        if self._shims:
            self._kinds["full disk"] = (2, self._fill_disk)
            self._kinds["slow disk"] = (3, self._slow_disk)
            self._kinds["wrong clock"] = (4, self._shift_clock)

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connect to the database, as the role of the service."""
        sockets = self.stack.services["postgres"].paths["/var/run/postgresql"]
        return psycopg.connect(
            host=str(sockets),
            user="loopwright",
            dbname="loopwright",
            autocommit=True,
            connect_timeout=_CONNECT_SECS,  # PostgreSQL may be paused, and this thread resumes it
        )

    def run(self, rng: Random, num: int, secs: float) -> None:
        """Inject some faults at random moments of some seconds; end all of them."""
        began = time.monotonic()
        moments = sorted(rng.uniform(0, secs) for _ in range(num))
        for moment in moments:
            kind = rng.choices(list(self._kinds), [w for w, _ in self._kinds.values()])[0]
            while time.monotonic() < began + moment:
                self._end_due(time.monotonic())
                time.sleep(0.02)
            detail = self._kinds[kind][1](rng)
            self.counts[kind] += 1
            self.log.append(f"{time.monotonic() - began:6.1f} s {kind}: {detail}")
        self._end_due(float("inf"))

    def restart_if_ended(self, name: str) -> bool:
        """Start a service again that has ended; return whether it had. The caller has the lock."""
        service = self.stack.services[name]
        assert service.process is not None
        looked_at = time.time()
        if service.process.poll() is None:
            self._alive_at[name] = looked_at
            return False
        self.processes.ended_at.setdefault(service.process.pid, self._alive_at.get(name, 0.0))
        service.start()
        return True

    def wait(self, name: str) -> None:
        """Wait until a service is healthy."""
        deadline = time.monotonic() + PATIENCE_SECS
        while not self.stack.services[name].is_healthy():
            assert time.monotonic() < deadline, self.stack.services[name].log_end()
            time.sleep(0.2)

    def close(self) -> None:
        """Close the links."""
        for link in self._links.values():
            link.stop()

    def _end_due(self, now: float) -> None:
        while self._ends and self._ends[0].at <= now:
            heapq.heappop(self._ends).end()

    def _later(self, secs: float, end: Callable[[], object]) -> None:
        heapq.heappush(self._ends, _End(time.monotonic() + secs, len(self.log), end))

    def _link(self, name: str) -> Link:
        service = self.stack.services[name]
        scheduler = service.hosts["scheduler"]
        network = scheduler.rpartition(".")[0]
        own = int(service.hosts[name].rpartition(".")[2])
        link = Link(f"{network}.{100 + own}", SCHEDULER_PORT, scheduler)
        service.hosts = {**service.hosts, "scheduler": link.host}
        link.start()
        return link

    def _preload(self, names: tuple[str, ...]) -> dict[str, shim.Faults]:
        if shim.find_compiler() is None:
            return {}
        folder = self.stack.services["postgres"].folder
        library = shim.build(folder)
        shims = {}
        for name in names:
            shims[name] = shim.Faults(library, folder / f"faults-{name}")
            self.stack.services[name].more_environment = shims[name].environment
        return shims

    def _kill(self, rng: Random) -> str:
        name = rng.choice(PARTS)
        with self.lock:
            ids = [process.pid for process in self.stack.services[name].processes()]
            self.processes.ended_at.update(dict.fromkeys(ids, time.time()))
            self.stack.kill(name)
        return name

    def _kill_child(self, rng: Random) -> str:
        service = self.stack.services[rng.choice(_WORKERS)]
        below = service.processes()[1:]
        if not below:
            return f"{service.name} has none"
        with suppress(psutil.NoSuchProcess):
            rng.choice(below).kill()
        return service.name

    def _pause(self, rng: Random) -> str:
        return self._pause_service(self.stack.services[rng.choice(PARTS)], rng.uniform(0.1, 4.0))

    def _pause_beyond_lease(self, rng: Random) -> str:
        service = self.stack.services[rng.choice(_COORDINATORS)]
        return self._pause_service(service, rng.uniform(31.0, 40.0))

    def _pause_service(self, service: Service, secs: float) -> str:
        paused = service.processes()
        for process in paused:
            with suppress(psutil.NoSuchProcess):
                process.suspend()

        def resume() -> None:
            for process in paused:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

        self._later(secs, resume)
        return f"{service.name} for {secs:.1f} s"

    def _restart_database(self, _rng: Random) -> str:
        with self.lock:
            self.stack.services["postgres"].signal_stop()
        return "fast shutdown"

    def _lose_sessions(self, _rng: Random) -> str:
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE usename = 'loopwright' AND pid <> pg_backend_pid()"
        )
        try:
            with self.connect() as connection:
                return f"{len(connection.execute(query.encode()).fetchall())} sessions"
        except psycopg.OperationalError:
            return "PostgreSQL does not respond"

    def _partition(self, rng: Random) -> str:
        name = rng.choice(list(self._links))
        secs, drops = rng.uniform(0.5, 8.0), rng.random() < 0.5
        self._links[name].cut()
        self._later(secs, lambda: self._links[name].mend(drops=drops))
        return f"{name} from the scheduler for {secs:.1f} s"

    def _fill_disk(self, rng: Random) -> str:
        secs = rng.uniform(0.3, 3.0)
        self._shims["postgres"].fill_disk(True)
        self._later(secs, lambda: self._shims["postgres"].fill_disk(False))
        return f"PostgreSQL's for {secs:.1f} s"

    def _slow_disk(self, rng: Random) -> str:
        secs, delay_secs = rng.uniform(1.0, 6.0), rng.uniform(0.02, 0.3)
        self._shims["postgres"].delay_syncs(delay_secs)
        self._later(secs, lambda: self._shims["postgres"].delay_syncs(0))
        return f"{delay_secs:.2f} s a sync for {secs:.1f} s"

    def _shift_clock(self, rng: Random) -> str:
        name = rng.choice(_COORDINATORS)
        secs, shift_secs = rng.uniform(2.0, 20.0), rng.choice((-1, 1)) * rng.uniform(1.0, 300.0)
        self._shims[name].shift_clock(shift_secs)
        self._later(secs, lambda: self._shims[name].shift_clock(0))
        return f"{name} by {shift_secs:.0f} s for {secs:.1f} s"
