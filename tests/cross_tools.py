"""The C compiler and the emulator of another architecture, where a host has them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def cross_tools(arch: str, folder: Path) -> tuple[str, str]:
    """Return the C compiler and the emulator of an architecture; skip the test without them.

    Args:
        arch: As GCC and QEMU call it, such as `aarch64`.
        folder: A folder for a program that the compiler tries.
    """
    compiler, emulator = f"{arch}-linux-gnu-gcc", f"qemu-{arch}"
    for tool in (compiler, emulator):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed, which runs code for {arch}")
    # Debian's cross compilers do not depend on the C library that they link.
    (folder / "probe.c").write_text("#include <stdio.h>\nint main(void) { return 0; }\n")
    command = (compiler, "-static", "probe.c", "-lm", "-o", "probe")
    if subprocess.run(command, cwd=folder, capture_output=True, timeout=60, check=False).returncode:
        pytest.skip(f"this host has no C library for {arch}, which {compiler} links")
    return compiler, emulator
