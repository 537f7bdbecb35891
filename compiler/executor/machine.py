"""What this machine can run: its architecture, and the flags of its CPU as Linux lists them."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from .error import PackageError

TILE_FLAG = "amx_tile"
# asm/unistd_64.h, asm/prctl.h and asm/fpu/types.h of Linux 5.16
_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


def check_machine(name: str, arch: str, flags: Iterable[str]) -> None:
    """Refuse code that this machine cannot run: an illegal instruction would kill the process.

    Args:
        name: The name of the package, for errors.
        arch: The architecture by Linux's name.
        flags: The flags of `/proc/cpuinfo` that the code needs.

    Raises:
        PackageError: If the architecture is another one, or flags are missing.
    """
    if arch != platform.machine():
        raise PackageError(f"{name} was built for {arch}: this machine is {platform.machine()}")
    missing = sorted(set(flags) - cpu_flags())
    if missing:
        raise PackageError(
            f"{name} was built for a CPU with {', '.join(missing)}: this CPU has none of that;"
            " compile the model for this CPU"
        )
    if TILE_FLAG in flags:
        try:
            request_tiles()
        except OSError as error:
            raise PackageError(f"{name} needs tile registers (AMX): {error.strerror}") from error


@cache
def cpu_flags() -> frozenset[str]:
    """Return the flags of the CPU, such as `avx2` or `asimddp`."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(line[1].split()) if line else frozenset()


@cache
def request_tiles() -> None:
    """Request the tile registers (AMX) for all threads of this process; once is enough.

    Linux gives them to a process only on request: they enlarge what the kernel saves of each thread
    by 8 KiB. Without the permission, the first instruction for them ends the process.

    Raises:
        OSError: If Linux refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
