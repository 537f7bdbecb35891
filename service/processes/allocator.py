"""Have glibc return memory that a process of many threads no longer uses.

Each thread gets an arena, up to eight for each core. What a thread frees stays in its arena: a few
objects that live on keep the memory around them. And the largest temporary array so far decides
which later ones are mapped apart from the arenas, and how much unused memory stays at their ends.
A coordinator prepares each job in a thread of the job, with megabytes of temporary arrays: half of
its memory was unused, and more with each job that it took over. Threads of Python allocate in
turns, so that they need no arenas of their own.
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD, _M_ARENA_MAX = -1, -8  # of glibc's malloc.h
_MAX_UNUSED = 1 << 20
"""Bytes that stay unused at the end of the arena. A limit also keeps the size from which arrays are
mapped apart at its default, 128 KiB. Chosen.
"""


def return_unused_memory() -> None:
    """Use one arena from now on, with a limit; call this before threads start.

    Nothing happens with other C libraries, which have no arenas.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
        set_option(_M_TRIM_THRESHOLD, _MAX_UNUSED)
