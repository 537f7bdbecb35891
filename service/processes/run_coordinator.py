"""Run a coordinator and its workers without the HTTP side; any number can share a database."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from threading import Event

import structlog

from compiler.user_cache import default_directory
from service.common.errors import ServeError
from service.processes.allocator import return_unused_memory
from service.processes.coordinator_thread import STOP_SECS, CoordinatorThread
from service.processes.priority import yield_processors
from service.store.database.database import open_database
from tuner.space import stored_spaces
from workers.engine.engine import ClusterAddress
from workers.health.ready_file import ReadyFile
from workers.logs import configure_logs

_log = structlog.get_logger()

_NICENESS = 10
"""The niceness of coordinators: on the host of an API, a scheduler and a database, look-ups come
first, for which programs wait. At 10 the kernel gives each of the others nine times the share; see
`docs/benchmarks_fleet.md`.
"""
_LOOK_SECS = 1.0
"""Interval at which the request to stop is checked. Chosen."""


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run_coordinator(
    db_url: str = "sqlite:///loopwright.db",
    num_workers: int = 1,
    *,
    num_jobs: int = 1,
    cluster: ClusterAddress | None = None,
    ready: ReadyFile | None = None,
    announce: Callable[[str], None] = _print_line,
) -> None:
    """Claim and run jobs until SIGINT or SIGTERM; then the current job returns to the queue.

    Args:
        num_jobs: The number of jobs to run at a time; more than one only with a cluster.
        cluster: Use the workers of a cluster instead of those of this process.
        ready: A file to renew while jobs are claimed; removed at the end.
        announce: Called just before the first claim.

    Raises:
        ServeError: If the database cannot be used, or no job can run.
    """
    configure_logs()
    return_unused_memory()
    if cluster is not None:  # workers of this process would time kernels with less of a processor
        yield_processors(_NICENESS)
    stored_spaces.keep_in(default_directory())
    ready = ready or ReadyFile(None)
    is_over = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    with closing(open_database(db_url)) as database:
        background = CoordinatorThread(database, num_workers, num_jobs=num_jobs, cluster=cluster)
        # Reading a large file takes a while; jobs run meanwhile.
        threading.Thread(target=database.look_for_damage, daemon=True).start()
        background.start()
        announce("Loopwright coordinator is running")
        _log.info("coordinating", num_workers=num_workers)
        try:
            while not is_over.wait(_LOOK_SECS):
                if not background.is_running:
                    raise ServeError("the coordinator did not start; see the log above")
                ready.renew()
        finally:
            _log.info("stopping")
            ready.remove()
            background.stop(STOP_SECS)
