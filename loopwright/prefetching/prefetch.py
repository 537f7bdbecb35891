"""`lw.prefetch`: fetch or build the kernels of a manifest before they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.executor.dtypes import numpy_dtype
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.keywords import suggests_keywords
from loopwright.client.client import Client
from loopwright.client.resolve_kernel import NO_TUNED_KERNEL, built_default
from loopwright.errors import LockError
from loopwright.kernels.kernel import Kernel, KernelSchedule
from loopwright.prefetching.manifest import WantedKernel, read_manifest
from loopwright.unmeasured_kernel import kernel as locked_kernel


@dataclass(frozen=True)
class PrefetchedKernel:
    """A kernel of a manifest.

    Attributes:
        wanted: The workload and the target.
        kernel: The kernel, ready to be called. None if there is none, and for a workload with
            constants: `client.kernel` and `lw.kernel` load it with their values.
        schedule: Which schedule it has; None if there is no kernel.
        problem: Why it is not tuned; empty if it is.
    """

    wanted: WantedKernel
    kernel: Kernel | None
    schedule: KernelSchedule | None
    problem: str = ""

    @property
    def is_tuned(self) -> bool:
        """Return whether it has a schedule that was tuned for it, or for the nearest shape."""
        return self.schedule in (KernelSchedule.BEST, KernelSchedule.NEAREST)


@dataclass(frozen=True)
class Prefetched:
    """The kernels of a manifest, in its order."""

    kernels: tuple[PrefetchedKernel, ...]

    def __repr__(self) -> str:
        num_tuned = sum(kernel.is_tuned for kernel in self.kernels)
        return f"<Prefetched: {num_tuned} of {len(self.kernels)} kernels are tuned>"

    @property
    def is_ready(self) -> bool:
        """Return whether all kernels are tuned."""
        return all(kernel.is_tuned for kernel in self.kernels)

    def __getitem__(self, workload: str) -> Kernel:
        """Return the kernel of a workload, as the manifest spells it without braces.

        Raises:
            KeyError: If the manifest does not have it, or it is not loaded.
        """
        for prefetched in self.kernels:
            if prefetched.wanted.workload == workload and prefetched.kernel is not None:
                return prefetched.kernel
        raise KeyError(workload)


@suggests_keywords
def prefetch(
    manifest: str | Path,
    *,
    lock: str | Path | None = None,
    url: str | None = None,
    token: str | None = None,
    nearest: bool = False,
    enqueue: bool = False,
) -> Prefetched:
    """Fetch the kernels of a manifest from a server into the cache, or build those of a lock file.

    From a server, later calls of `client.kernel` answer at once, and also while the server is down.
    A workload without a tuned kernel gets the default schedule, which is built in each process.

    Args:
        manifest: A TOML file.
        lock: A lock file: no server is asked, and a kernel that is not in it is a problem.
        url: The server, by default that of `lw.Client`.
        token: The access token of the server.
        nearest: Whether the adapted schedule of the nearest shape will do.
        enqueue: Whether the server queues jobs for workloads that were not tuned.

    Raises:
        ManifestError: If the manifest is not valid.
        AccessDeniedError: If the token may not do this.
        BuildError: If not even the default schedule can be built.
    """
    wanted = read_manifest(manifest)
    with nullcontext() if lock is not None else Client(url, token) as client:
        return Prefetched(
            tuple(each_prefetched(wanted, client, lock, nearest=nearest, enqueue=enqueue))
        )


def each_prefetched(
    wanted: list[WantedKernel],
    client: Client | None,
    lock: str | Path | None,
    *,
    nearest: bool = False,
    enqueue: bool = False,
) -> Iterator[PrefetchedKernel]:
    """Yield the kernels of a manifest, one by one; by a client, or from a lock file."""
    for kernel in wanted:
        if client is None:
            assert lock is not None
            yield _locked(kernel, lock)
        else:
            yield _fetched(kernel, client, nearest=nearest, enqueue=enqueue)


def _locked(wanted: WantedKernel, lock: str | Path) -> PrefetchedKernel:
    try:
        return _loaded(
            wanted,
            lambda constants: locked_kernel(
                wanted.func, lock=lock, target=wanted.target, const_params=constants
            ),
        )
    except LockError as error:
        return PrefetchedKernel(wanted, None, None, str(error))


def _fetched(
    wanted: WantedKernel, client: Client, *, nearest: bool, enqueue: bool
) -> PrefetchedKernel:
    try:
        return _loaded(
            wanted,
            lambda constants: client.kernel(
                wanted.query,
                target=wanted.target,
                nearest=nearest,
                enqueue=enqueue,
                fallback=False,
                const_params=constants,
            ),
        )
    except NO_TUNED_KERNEL as error:
        problem, why = str(error), error
    return _loaded(
        wanted, lambda constants: built_default(wanted.func, wanted.target, why, constants), problem
    )


def _loaded(
    wanted: WantedKernel,
    load: Callable[[dict[str, NDArray[Any]] | None], Kernel],
    problem: str = "",
) -> PrefetchedKernel:
    """Load a kernel; one with constants is loaded with zeros, and not returned."""
    zeros = _zeros(wanted.func)
    kernel = load(zeros)
    return PrefetchedKernel(wanted, None if zeros else kernel, kernel.schedule, problem)


def _zeros(func: PrimFunc) -> dict[str, NDArray[Any]] | None:
    constants = constant_params(func)
    return {b.name: np.zeros(static_shape(b), numpy_dtype(b.dtype)) for b in constants} or None
