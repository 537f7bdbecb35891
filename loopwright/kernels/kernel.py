"""A compiled kernel for users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.executor.kernel import BACKEND, LoadedKernel
from loopwright.errors import ArtifactRefusedError

if TYPE_CHECKING:
    from datetime import datetime

    from compiler.backends.module import Module


class KernelSource(StrEnum):
    """The source of a kernel."""

    SERVER = "server"  # just fetched: the server's best
    CACHE = "cache"  # fetched earlier; the server still has the same one, or does not answer
    DEFAULT = "default"  # built here from the default schedule, because there is no tuned one
    LOCK = "lock"  # built here, as a lock file says
    PROPOSED = "proposed"  # built here, as the base model proposes


class KernelSchedule(StrEnum):
    """The schedule of a kernel."""

    BEST = "best"  # the fastest measured schedule of this workload
    NEAREST = "nearest"  # that of the nearest shape, adapted, and not measured on this one
    PROPOSED = "proposed"  # what the base model proposes, not measured
    DEFAULT = "default"  # the default schedule


class Kernel:
    """A kernel, called like its program: arrays in the order of the parameters, outputs in place.

    If it comes from the cache, `fetched_at` is the time when the server sent it. The constants of
    the program are passed once, in `const_params`, and packed.

    Raises:
        ArtifactRefusedError: If the artifact is for another CPU.
        ArgumentError: If the constants do not fit the kernel.
    """

    def __init__(
        self,
        artifact: Artifact,
        source: KernelSource,
        schedule: KernelSchedule = KernelSchedule.BEST,
        fetched_at: datetime | None = None,
        const_params: Mapping[str, Any] | None = None,
    ) -> None:
        self.artifact = artifact
        self.source = source
        self.schedule = schedule
        self.fetched_at = fetched_at
        self._const_params = const_params
        self._module: Module | None = None
        try:
            self._loaded = (
                self.module if _needs_backend(artifact) else LoadedKernel(artifact, const_params)
            )
        except ArtifactError as error:
            raise ArtifactRefusedError(str(error)) from error

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run on arrays; outputs are written in place.

        Args:
            arrays: One a parameter that is not constant.
            num_threads: The maximum number of threads, by default the number of cores.

        Raises:
            ArgumentError: If an array does not have the shape, dtype or layout of its parameter.
        """
        self._loaded(*arrays, num_threads=num_threads)

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        Only one thread at a time may call it.

        Raises:
            ArgumentError: As a call does.
        """
        return self._loaded.bind(*arrays, num_threads=num_threads)

    def __repr__(self) -> str:
        adapted = ", nearest shape's" if self.schedule is KernelSchedule.NEAREST else ""
        return f"<Kernel {self.artifact.name} for {self.artifact.target} ({self.source}{adapted})>"

    @property
    def is_tuned(self) -> bool:
        """Return whether a search found its schedule; false for default and proposed ones."""
        return self.source not in (KernelSource.DEFAULT, KernelSource.PROPOSED)

    @property
    def module(self) -> Module:
        """Return the kernel as a module, for `time_evaluator`; this imports the compiler."""
        if self._module is None:
            from compiler.backends.module import Module  # noqa: PLC0415

            self._module = Module(self.artifact, self._const_params)
        return self._module


def _needs_backend(artifact: Artifact) -> bool:
    """Return whether only the backend of a kernel loads it.

    So it is for a GPU, and of an older version that wrote kernels without their pool of threads.
    """
    return artifact.backend != BACKEND or (artifact.num_threads > 1 and not artifact.pool)


def schedule_of(word: str | None) -> KernelSchedule:
    """Return the schedule that the server's header names; the best without a header."""
    return KernelSchedule(word) if word in list(KernelSchedule) else KernelSchedule.BEST


def load(
    content: bytes,
    source: KernelSource,
    schedule: KernelSchedule = KernelSchedule.BEST,
    fetched_at: datetime | None = None,
    const_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Load a kernel that a server compiled.

    Raises:
        ArtifactRefusedError: If the bytes are damaged, or for another CPU.
        ArgumentError: If the constants do not fit the kernel.
    """
    try:
        artifact = Artifact.from_bytes(content)
    except ArtifactError as error:
        raise ArtifactRefusedError(str(error)) from error
    if artifact.functions:
        raise ArtifactRefusedError(
            f"{artifact.name} calls functions of this process ({', '.join(artifact.functions)}):"
            " a kernel of a server may call none; build the program here"
        )
    return Kernel(artifact, source, schedule, fetched_at, const_params)
