"""Tile registers (AMX), which Linux gives to a process only on request.

They enlarge what the kernel saves of each thread by 8 KiB. Without the permission, the first
instruction for them ends the process.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

from compiler.runtime.artifact import ArtifactError

FEATURE = "+amx-tile"
"""LLVM's name of the feature."""
# asm/unistd_64.h, asm/prctl.h and asm/fpu/types.h of Linux 5.16
_SYS_ARCH_PRCTL = 158
_ARCH_REQ_XCOMP_PERM = 0x1023
_XFEATURE_XTILEDATA = 18


@cache
def request_tiles() -> None:
    """Request the tile registers for all threads of this process; once is enough.

    Raises:
        ArtifactError: If Linux refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA):
        reason = os.strerror(ctypes.get_errno())
        raise ArtifactError(
            f"Linux refuses the tile registers (AMX) to this process: {reason}."
            " They require Linux 5.16 or later, and alternate signal stacks with room for them."
            " Build the kernel for a CPU without AMX, such as -mcpu=icelake-server"
        )
