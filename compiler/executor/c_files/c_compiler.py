"""The C compilers of this host, by the architecture that they make code for."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from ..machine import architecture

# By architecture, the start of the names of GCC's programs that make code for it.
_GCC_PREFIXES = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "armv7l": "arm-linux-gnueabihf",
    "riscv64": "riscv64-linux-gnu",
}


def compiler_names(arch: str) -> Sequence[str]:
    """Return the names of compilers for an architecture, by Linux's name of it; the usual last."""
    cross = f"{_GCC_PREFIXES[arch]}-gcc"
    return ("cc", "gcc", "clang", cross) if arch == architecture() else (cross,)


def find_c_compiler(arch: str) -> str | None:
    """Return a compiler for an architecture; None if there is none."""
    return next((name for name in compiler_names(arch) if shutil.which(name) is not None), None)
