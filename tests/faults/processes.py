"""Whether processes are dead: an orphan may stay a zombie until the system gets round to it."""

from __future__ import annotations

import time
from collections.abc import Iterable

import psutil


def is_dead(process: psutil.Process) -> bool:
    """Tell whether a process is gone, reaped or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def survivors(processes: Iterable[psutil.Process], timeout_secs: float) -> list[psutil.Process]:
    """Return those of some processes that do not die in time."""
    deadline = time.monotonic() + timeout_secs
    alive = list(processes)
    while alive and time.monotonic() < deadline:
        time.sleep(0.02)
        alive = [process for process in alive if not is_dead(process)]
    return alive
