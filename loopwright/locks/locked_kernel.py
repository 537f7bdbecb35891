"""Build the kernel that a lock file names, and no other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import loopwright
from compiler.backends.backend import host_labels
from compiler.driver import toolchain
from compiler.executor.artifact import Artifact
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import ScheduleError
from compiler.target.target import Target, complete_target
from loopwright.errors import LockError
from loopwright.kernels.cached_build import build_here, build_kernel
from loopwright.locks.lock_file import LockedKernel, LockFile
from loopwright.workload import WorkloadLike, to_func

_MOST_SHOWN = 8
"""Kernels that a message lists. Chosen."""


def locked_artifact(workload: WorkloadLike, lock: str | Path, target: Target | str) -> Artifact:
    """Build the kernel of a lock file; see `lw.kernel`.

    Raises:
        LockError: If the file is missing or damaged, does not have the function for this machine,
            or was written with another version of the compiler.
    """
    func = to_func(workload)
    entry = find_locked(LockFile.load(lock), func, target, str(lock))
    return build_locked(entry, func, str(lock))


def find_locked(lock: LockFile, func: PrimFunc, target: Target | str, path: str) -> LockedKernel:
    """Return the kernel of a function for a machine.

    Args:
        path: The name of the file, for messages.

    Raises:
        LockError: If there is none.
    """
    goal = complete_target(target, host_labels)
    entries = lock.of(structural_hash(func))
    if not entries:
        raise LockError(
            f"{func.name} is not in {path}, which has {_listed(lock.kernels)};"
            f" `loopwright lock WORKLOAD -o {path}` adds it"
        )
    exact = [entry for entry in entries if entry.target == goal.name]
    # A target that was spelled out names its cores; "cpu" takes what this CPU has.
    is_named = isinstance(target, Target) or len(target.split()) > 1
    similar = [entry for entry in entries if not is_named and _label(entry) == goal.timing_label]
    chosen = exact or similar
    if len(chosen) == 1:
        return chosen[0]
    advice = (
        f"pass target=, one of these, or add this one: `loopwright lock WORKLOAD --target"
        f' "{goal.name}" -o {path}`'
    )
    raise LockError(
        f"{func.name} is not locked for {goal.name} in {path}, but for {_targets(entries)};"
        f" {advice}"
    )


def build_locked(
    entry: LockedKernel, func: PrimFunc, path: str, *, use_cache: bool = True
) -> Artifact:
    """Build a kernel, and check that it is the locked one.

    Args:
        entry: The kernel of the lock file.
        func: Its function.
        path: The name of the file, for messages.
        use_cache: Whether it may come from the remote cache.

    Raises:
        LockError: If another version of the compiler runs here, or it builds other code.
    """

    def is_locked(artifact: Artifact) -> bool:
        return entry.code_sha256 in (None, code_digest(artifact))

    check_toolchain(entry, path)
    try:
        if use_cache:
            artifact = build_kernel(func, Target(entry.target), entry.schedule, is_locked)
        else:
            artifact = build_here(func, Target(entry.target), entry.schedule)
    except ScheduleError as error:
        raise refused(entry, error) from error
    if not is_locked(artifact):
        raise LockError(
            f"{entry.label} becomes other machine code here than when it was locked: this CPU lacks"
            " or adds features (a virtual machine may hide some), or the installation was changed;"
            f" {_rebuild(path)}"
        )
    return artifact


def check_toolchain(entry: LockedKernel, path: str) -> None:
    """Require the compiler that a kernel was locked for.

    Raises:
        LockError: If another one runs here.
    """
    here = toolchain(Target(entry.target).kind)
    if here != entry.toolchain:
        raise LockError(
            f"{entry.label} is locked for {entry.toolchain} (loopwright {entry.loopwright}), but"
            f" this is {here} (loopwright {loopwright.__version__}): install that version, or"
            f" {_rebuild(path)}"
        )


def _rebuild(path: str) -> str:
    return f"`loopwright lock --rebuild -o {path}` accepts it and keeps the schedules"


def refused(entry: LockedKernel, error: ScheduleError) -> LockError:
    """Return the error for a locked schedule that this version refuses."""
    return LockError(
        f"{entry.label}: this version refuses the locked schedule: {error}; tune the function"
        " again, and lock the result"
    )


def code_digest(artifact: Artifact) -> str:
    """Return the SHA-256 of the code of a kernel, and of the packer of its constants."""
    packer = b"" if artifact.packer is None else artifact.packer.code
    parts = b"".join(part.code for part in artifact.parts)
    return hashlib.sha256(artifact.code + packer + parts).hexdigest()


@lru_cache(maxsize=64)
def _target_label(text: str) -> str:
    return Target(text).timing_label


def _label(entry: LockedKernel) -> str:
    return _target_label(entry.target)


def _targets(entries: Sequence[LockedKernel]) -> str:
    return " and ".join(entry.target for entry in entries)


def _listed(kernels: Sequence[LockedKernel]) -> str:
    if not kernels:
        return "no kernel"
    shown = ", ".join(f"{k.name} ({k.workload_key[:12]})" for k in kernels[:_MOST_SHOWN])
    rest = len(kernels) - _MOST_SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown
