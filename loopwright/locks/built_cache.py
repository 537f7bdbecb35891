"""Kernels that `lw.kernel` built, on disk, so that the next process needs no compiler.

A key covers all that a build follows from: the texts of workload and target, the lock file, the
CPU and its number of cores, and the versions of the code generator and of LLVM. A file that is
damaged, or that another process takes away, costs a build. The files are machine code of this user,
as Python's own caches hold its code.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re

import loopwright
from compiler.codegen_version import CODEGEN_VERSION
from compiler.executor.artifact import Artifact
from compiler.executor.cores import available_cores
from compiler.executor.error import ArtifactError
from compiler.executor.kernel import BACKEND

_FOLDER = "locked"
# What /proc/cpuinfo says of a CPU and not of its state, such as the clock.
_OF_CPU = re.compile(
    r"^(?:vendor_id|cpu family|model|stepping|flags|CPU \w+|Features|isa|uarch)\s*:.*$", re.M
)


def key_of(workload: object, lock: str | os.PathLike[str], target: str) -> str | None:
    """Return the key of a kernel; None for a workload that is no text, or without a lock file."""
    if not isinstance(workload, str):
        return None
    try:
        with open(lock, "rb") as file:
            content = file.read()
        llvm = os.stat(_llvm())
    except OSError:
        return None
    parts = (
        *(workload.strip(), target, hashlib.sha256(content).hexdigest(), _cpu(), available_cores()),
        *(os.environ.get("LOOPWRIGHT_HOST_CPU"), loopwright.__version__, CODEGEN_VERSION),
        *(llvm.st_mtime_ns, llvm.st_size),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def find(key: str) -> Artifact | None:
    """Return the kernel of a key; None if it is not there, or damaged."""
    path = os.path.join(_directory(), _FOLDER, key)
    try:
        artifact = Artifact.load(path)
        os.utime(path)
    except (OSError, ArtifactError):
        return None
    return artifact


def put(key: str, artifact: Artifact) -> None:
    """Keep a kernel for CPUs; one that can't be written costs the next build."""
    if artifact.backend != BACKEND:
        return
    # Imported on use: a process that only reads needs neither.
    from pathlib import Path  # noqa: PLC0415

    from loopwright.atomic_file import atomic_file  # noqa: PLC0415
    from loopwright.cache_space import make_room  # noqa: PLC0415

    directory = Path(_directory())
    with contextlib.suppress(OSError):
        (directory / _FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
        with atomic_file(directory / _FOLDER / key) as file:
            file.write(artifact.to_bytes())
        make_room(directory)


def _directory() -> str:
    """Return the directory of `compiler.user_cache`, whose import takes as long as a load."""
    if chosen := os.environ.get("LOOPWRIGHT_CACHE"):
        return chosen
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(root, "loopwright")


def _cpu() -> str:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        first, _, _ = file.read().partition("\n\n")
    return "\n".join(_OF_CPU.findall(first))


def _llvm() -> str:
    """Return the file of LLVM's bindings, whose time and size stand for their version."""
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("llvmlite")
    return spec.origin
