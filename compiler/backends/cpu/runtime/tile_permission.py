"""Tile registers (AMX), which Linux gives to a process only on request."""

from __future__ import annotations

from compiler.executor import machine
from compiler.executor.error import ArtifactError

FEATURE = "+amx-tile"
"""LLVM's name of the feature."""


def request_tiles() -> None:
    """Request the tile registers for all threads of this process; once is enough.

    Raises:
        ArtifactError: If Linux refuses.
    """
    try:
        machine.request_tiles()
    except OSError as error:
        raise ArtifactError(
            f"Linux refuses the tile registers (AMX) to this process: {error.strerror}."
            " They require Linux 5.16 or later, and alternate signal stacks with room for them."
            " Build the kernel for a CPU without AMX, such as -mcpu=icelake-server"
        ) from error
