"""Check whether processes are dead; an orphan may stay a zombie for a while."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil


def is_dead(process: psutil.Process) -> bool:
    """Return whether a process ended, reaped or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def survivors(processes: Iterable[psutil.Process], timeout_secs: float) -> list[psutil.Process]:
    """Return the processes that do not end in time."""
    deadline = time.monotonic() + timeout_secs
    alive = list(processes)
    while alive and time.monotonic() < deadline:
        time.sleep(0.02)
        alive = [process for process in alive if not is_dead(process)]
    return alive
