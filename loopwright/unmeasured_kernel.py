"""`lw.kernel`: a kernel at once, of a lock file or as the base model proposes it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compiler.executor.artifact import Artifact
from compiler.keywords import suggests_keywords
from loopwright.errors import FallbackWarning
from loopwright.kernels.kernel import Kernel, KernelSchedule, KernelSource
from loopwright.locks import built_cache
from loopwright.user_warnings import warn_user

if TYPE_CHECKING:
    from compiler.target.target import Target
    from loopwright.workload import WorkloadLike


@suggests_keywords
def kernel(
    workload: WorkloadLike,
    *,
    lock: str | os.PathLike[str] | None = None,
    target: Target | str = "cpu",
    const_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return a kernel without a search: no server, no database, nothing is measured.

    Without a lock file, it has the schedule that the base model proposes. It takes about as long as
    one trial of `lw.tune`, which is the way to a faster kernel.

    The kernel of a lock file is built, and kept in `$LOOPWRIGHT_CACHE` if the workload is a text.
    So the next process loads it without the compiler, if lock file, machine and installation are
    the same.

    Args:
        workload: The function, in a form that `lw.tune` takes.
        lock: The lock file.
        target: The machine. For `"cpu"`, the kernel that is locked for this CPU is built, also if
            it was locked for another number of cores.
        const_params: An array for each constant of the function, by name; calls omit them.

    Raises:
        LockError: If the file is missing or damaged, does not have the function for this machine,
            or was written with another version of the compiler.
        BuildError: If the function can't be built.
        ArtifactRefusedError: If this host cannot run code for the target.
        ArgumentError: If the constants do not fit the kernel.

    Warns:
        FallbackWarning: If there is no lock file, and the kernel has the default schedule.
    """
    if lock is None:
        return _proposed(workload, target, const_params)
    key = built_cache.key_of(workload, lock, str(getattr(target, "name", target)))
    artifact: Artifact | None = None if key is None else built_cache.find(key)
    if artifact is None:
        # Imported on use: it needs the compiler, and takes most of a second.
        builder = importlib.import_module("loopwright.locks.locked_kernel")
        artifact = builder.locked_artifact(workload, lock, target)
        if key is not None:
            built_cache.put(key, artifact)
    return Kernel(artifact, KernelSource.LOCK, const_params=const_params)


def _proposed(
    workload: WorkloadLike, target: Target | str, const_params: Mapping[str, Any] | None
) -> Kernel:
    proposals = importlib.import_module("loopwright.local.proposals")
    artifact, problem = proposals.proposed_artifact(workload, target)
    if not problem:
        source, schedule = KernelSource.PROPOSED, KernelSchedule.PROPOSED
    else:
        source, schedule = KernelSource.DEFAULT, KernelSchedule.DEFAULT
        warn_user(f"the kernel has the default schedule: {problem}", FallbackWarning)
    return Kernel(artifact, source, schedule, const_params=const_params)
