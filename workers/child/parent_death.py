"""Die with the parent: Linux's parent-death signal, so that no orphans remain."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Have this process killed when the thread that started it ends.

    Args:
        parent_pid: The parent, as passed to this process. It may have died before the
            signal was set, which would then never come; this process exits instead.

    Raises:
        OSError: If the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")
    if os.getppid() != parent_pid:
        os._exit(1)
