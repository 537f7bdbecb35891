"""The sandbox: rights that a child drops before it runs anything from users.

A candidate is machine code from our compiler, and a library is an installed package: neither needs
a network, further processes, large files or privileges. Each measure is taken if the kernel allows
it, and otherwise named in the report of the worker.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
from contextlib import suppress

from compiler.executor.cores import available_cores
from workers.child.seccomp import SeccompError, refuse_system_calls

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_MAX_FILES = 1024
"""Open files of a child: the usual soft limit of Linux."""
_MAX_FILE_BYTES = 320 << 20
"""The largest file of a child: above `workers.measure.shared_arrays.MAX_BYTES`, the most that it
writes.
"""
_MAX_THREADS = 256
"""Threads of a child, and eight more for each core: libraries have pools of their own. Chosen."""
CPU_SECS_A_CORE = 1800
"""The limit on a child's CPU time a core; the runner replaces one that has used half of it."""


def confine() -> list[str]:
    """Drop all rights that measuring does not need, for good; return the refused measures.

    Call this before threads start: with threads, an ordinary user can't enter a name space.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    lacks = []
    has_own_users, reason = _leave_network(libc)
    if reason:
        lacks.append(f"no network isolation: {reason}")
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, _MAX_FILES)
    _limit(resource.RLIMIT_FSIZE, _MAX_FILE_BYTES)
    _limit(resource.RLIMIT_CPU, CPU_SECS_A_CORE * available_cores())
    if has_own_users:
        # Elsewhere this would count all threads of the user on the host.
        _limit(resource.RLIMIT_NPROC, _MAX_THREADS + 8 * available_cores())
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        lacks.append(f"no_new_privs: {_error()}")
    return lacks


def refuse(*, outside: bool = False) -> list[str]:
    """Install the filter of system calls; return the refused measures.

    Args:
        outside: Refuse files too: see `refuse_system_calls`.
    """
    try:
        refuse_system_calls(outside=outside)
    except SeccompError as error:
        return [f"no system call filter: {error.strerror}"]
    return []


def is_spent() -> bool:
    """Return whether this process has used half of its limit of CPU time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime > CPU_SECS_A_CORE * available_cores() / 2


def _leave_network(libc: ctypes.CDLL) -> tuple[bool, str]:
    """Enter an empty network name space, without even an active loopback.

    Returns:
        Whether it needed a user name space, as it does without privileges; and why it failed.
    """
    if libc.unshare(_CLONE_NEWNET) == 0:
        return False, ""
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False, _error()
    # Otherwise this process would own its files as the user `nobody`.
    with suppress(OSError):
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    return True, ""


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (most, most))


def _error() -> str:
    number = ctypes.get_errno()
    return os.strerror(number or errno.EPERM)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
