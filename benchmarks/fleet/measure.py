"""What a run does, and what it measures: kills, look-ups, streams, a job of high priority."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from sqlalchemy import select

from benchmarks.fleet.accounts import (
    JobAccount,
    delays,
    first_trial_at,
    num_begun,
    num_owned_by,
    num_stored,
    read_accounts,
    shares,
)
from benchmarks.fleet.fleet import Fleet, wait_until
from benchmarks.fleet.processes import Usage
from benchmarks.fleet.streams import Streams
from benchmarks.service.http_load import Load, run
from service.store.results.best_schedules import BestScheduleRow

LOOKUPS_PER_SEC = 500
NUM_STREAMS = 200
_SETTLE_SECS = 10.0
"""Between the arrival of the workers and the window. Chosen."""


@dataclass
class Measured:
    """The results of a run; times in seconds, processor time by role."""

    begun_secs: float = 0.0
    num_begun: int = 0
    joined_secs: float | None = None
    begin: float = 0.0
    end: float = 0.0
    num_stored: int = 0
    shares: dict[str, float] = field(default_factory=dict)
    takeover_secs: list[float] = field(default_factory=list)
    first_trial_secs: float | None = None
    lookups: Load | None = None
    stream_secs: list[float] = field(default_factory=list)
    num_broken_streams: int = 0
    num_ended_streams: int = 0
    reports: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Usage] = field(default_factory=dict)
    accounts: dict[UUID, JobAccount] = field(default_factory=dict)
    num_kills: int = 0

    @property
    def secs(self) -> float:
        """The length of the window."""
        return self.end - self.begin


def measure(fleet: Fleet) -> Measured:
    """Let the workers join, measure for the window, and stop the fleet."""
    measured = Measured()
    _join(fleet, measured)
    time.sleep(min(_SETTLE_SECS, fleet.size.secs / 3))
    streams = Streams(fleet.api_url, fleet.job_ids[:NUM_STREAMS])
    measured.begin = time.time()
    with _lookups(fleet) as load:
        _disturb(fleet, measured)
    measured.end = time.time()
    measured.lookups = load.result()
    streams.stop()
    fleet.processes.stop()
    moments = [datetime.fromtimestamp(at, UTC) for at in (measured.begin, measured.end)]
    measured.num_stored = num_stored(fleet.database, *moments)
    measured.shares = shares(fleet.database, *moments)
    measured.stream_secs = delays(fleet.database, streams.arrivals)
    measured.num_broken_streams = streams.num_broken
    measured.num_ended_streams = streams.num_ended
    measured.reports = fleet.reports()
    measured.usage = dict(fleet.processes.usage)
    measured.accounts = read_accounts(fleet.database, streams.seen)
    return measured


def _join(fleet: Fleet, measured: Measured) -> None:
    """Connect the first host, and, once all jobs run, all others at once."""
    fleet.start_host(0)
    wait_until(lambda: fleet.is_ready(0))
    begin = time.time()
    fleet.open_gate()
    wait_until(lambda: num_begun(fleet.database) == fleet.size.jobs)
    measured.begun_secs, measured.num_begun = time.time() - begin, num_begun(fleet.database)
    if not measured.num_begun:
        ends = "\n".join(map(fleet.processes.log_end, ("scheduler", "coordinator", "workers")))
        raise SystemExit(f"no trial was stored within five minutes; the ends of the logs:\n{ends}")
    others = range(1, fleet.size.hosts)
    fleet.close_gate()
    for number in others:
        fleet.start_host(number)
    wait_until(lambda: all(map(fleet.is_ready, others)))
    begin = time.time()
    fleet.open_gate()

    def num_served() -> int:
        return len({r["host"] for r in fleet.reports() if r["first_secs"] is not None})

    if wait_until(lambda: num_served() == fleet.size.hosts):
        measured.joined_secs = time.time() - begin


@contextmanager
def _lookups(fleet: Fleet) -> Iterator[Future[Load]]:
    with fleet.database.read() as session:
        tasks = session.execute(select(BestScheduleRow.workload_key, BestScheduleRow.target)).all()
    paths = [
        "/api/v1/schedules/best?" + urlencode({"workload_key": key, "target": target})
        for key, target in tasks
    ]
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(
            run,
            fleet.api_url,
            paths,
            secs=fleet.size.secs,
            connections=64,
            per_sec=LOOKUPS_PER_SEC,
        )


def _disturb(fleet: Fleet, measured: Measured) -> None:
    """Kill a host and a coordinator at intervals, and submit a job of high priority amid them."""
    kill_at = measured.begin + fleet.size.kill_secs
    submit_at = measured.begin + fleet.size.kill_secs / 2
    urgent: UUID | None = None
    while (now := time.time()) < measured.begin + fleet.size.secs:
        if urgent is None and now >= submit_at:
            urgent = fleet.submit(fleet.size.jobs, priority=10)
            submit_at = now  # of this loop's interval it may have waited a part
        if now >= kill_at and now + 10 < measured.begin + fleet.size.secs:
            kill_at += fleet.size.kill_secs
            measured.takeover_secs.append(_kill(fleet, measured.num_kills))
            measured.num_kills += 1
        time.sleep(0.2)
    if urgent is not None and (first := first_trial_at(fleet.database, urgent)) is not None:
        measured.first_trial_secs = first.timestamp() - submit_at


def _kill(fleet: Fleet, number: int) -> float:
    """Kill a coordinator and a host; return the time until others own the coordinator's jobs."""
    victim = fleet.coordinators.pop(0)
    machine = fleet.machine_of(victim)
    begin = time.monotonic()
    fleet.processes.kill(victim)
    fleet.kill_host(number % fleet.size.hosts)
    wait_until(lambda: num_owned_by(fleet.database, [machine]) == 0, 45.0)
    secs = time.monotonic() - begin
    fleet.start_coordinator()
    return secs
