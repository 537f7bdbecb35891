"""The priority of a process beside the others of its host."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")
"""The niceness of the session (sched(7)); it is missing if the kernel does not group by session."""
_ATTEMPTS, _PAUSE_SECS = 20, 0.1
"""For a session that others keep waiting: two seconds. Chosen."""


def yield_processors(niceness: int) -> None:
    """Let the other processes of the host use its processors first.

    Linux divides processors between sessions, and then, by niceness, within each. So a process
    that leads a session lowers the priority of this, too. Containers and units of systemd have
    weights instead, which their files state.
    """
    os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _write_autogroup(niceness)


def _write_autogroup(niceness: int) -> None:
    """Write the niceness of the session; of all users together the kernel accepts ten a second."""
    for _ in range(_ATTEMPTS):
        try:
            AUTOGROUP.write_text(str(niceness))
        except BlockingIOError:
            time.sleep(_PAUSE_SECS)
        else:
            return
