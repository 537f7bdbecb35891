"""A compiled kernel in the user's hands."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from compiler.backends.module import Module
from compiler.runtime.artifact import Artifact, ArtifactError
from loopwright.errors import ArtifactRefusedError


class KernelSource(StrEnum):
    """Where a kernel comes from."""

    SERVER = "server"  # just fetched: the best that the server knows
    CACHE = "cache"  # fetched earlier; the server still has the same one, or does not answer
    DEFAULT = "default"  # built here from the default schedule, for want of a tuned one


class KernelSchedule(StrEnum):
    """Which schedule a kernel has."""

    BEST = "best"  # the fastest that was measured of this workload
    NEAREST = "nearest"  # that of the nearest shape, adapted, and not measured on this one
    DEFAULT = "default"  # the program as it is


class Kernel:
    """A kernel, called like its program: arrays in the order of the parameters, outputs in place.

    One from the cache has the time when the server gave it, `fetched_at`.

    Raises:
        ArtifactRefusedError: If the artifact is meant for a CPU that this is not.
    """

    def __init__(
        self,
        artifact: Artifact,
        source: KernelSource,
        schedule: KernelSchedule = KernelSchedule.BEST,
        fetched_at: datetime | None = None,
    ) -> None:
        self.artifact = artifact
        self.source = source
        self.schedule = schedule
        self.fetched_at = fetched_at
        try:
            self._module = Module(artifact)
        except ArtifactError as error:
            raise ArtifactRefusedError(str(error)) from error

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run on arrays; outputs are written in place.

        Args:
            arrays: One a parameter.
            num_threads: How many threads to use at most, if not as many as there are cores.

        Raises:
            ArgumentError: If an array has not the shape, dtype or layout of its parameter.
        """
        self._module(*arrays, num_threads=num_threads)

    def __repr__(self) -> str:
        adapted = ", nearest shape's" if self.schedule is KernelSchedule.NEAREST else ""
        return f"<Kernel {self.artifact.name} for {self.artifact.target} ({self.source}{adapted})>"

    @property
    def is_tuned(self) -> bool:
        """Whether this is the product of a search, and not of the default schedule."""
        return self.source is not KernelSource.DEFAULT

    @property
    def module(self) -> Module:
        """The loaded module, for `time_evaluator`."""
        return self._module


def schedule_of(word: str | None) -> KernelSchedule:
    """Return the schedule that a server's word means; one that it does not say is the best."""
    return KernelSchedule(word) if word in list(KernelSchedule) else KernelSchedule.BEST


def load(
    content: bytes,
    source: KernelSource,
    schedule: KernelSchedule = KernelSchedule.BEST,
    fetched_at: datetime | None = None,
) -> Kernel:
    """Load a kernel that a server compiled.

    Raises:
        ArtifactRefusedError: If the bytes are damaged, or meant for a CPU that this is not.
    """
    try:
        artifact = Artifact.from_bytes(content)
    except ArtifactError as error:
        raise ArtifactRefusedError(str(error)) from error
    return Kernel(artifact, source, schedule, fetched_at)
