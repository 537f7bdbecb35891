"""Build the program of a device without Python, from its sources in C."""

from __future__ import annotations

import subprocess
from pathlib import Path

from compiler.executor.c_files.c_compiler import compiler_names, find_c_compiler
from compiler.remote.error import RemoteError

SOURCES = Path(__file__).parent / "runner"
FILES = ("main.c", "bytes.c", "device.c", "kernels.c", "memory.c", "session.c", "symbols.c")
OPTIONS = ("-O2", "-std=gnu11", "-static")
_BUILD_SECS = 120.0
"""Time limit of the C compiler, which takes about a second. Chosen for a busy host."""


class RunnerBuildError(RemoteError):
    """The program of a device can't be built."""


def build_runner(arch: str, path: Path) -> None:
    """Build `loopwright-runner` for an architecture, as a static program.

    Args:
        arch: The architecture by Linux's name, such as `aarch64`.
        path: The file to write.

    Raises:
        RunnerBuildError: If there is no C compiler for it, or it fails.
    """
    compiler = find_c_compiler(arch)
    if compiler is None:
        raise RunnerBuildError(
            f"no C compiler for {arch} is installed: install {compiler_names(arch)[-1]}"
        )
    sources = [str(SOURCES / name) for name in FILES]
    command = [compiler, *OPTIONS, *sources, "-o", str(path), "-lm", "-lpthread"]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=_BUILD_SECS)
    except (OSError, subprocess.SubprocessError) as error:
        words = getattr(error, "stderr", None) or str(error).encode()
        reason = words.decode(errors="replace").strip()[-500:]
        raise RunnerBuildError(f"{compiler} cannot build the runner: {reason}") from error
