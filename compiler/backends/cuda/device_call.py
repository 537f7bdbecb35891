"""Calls that are bound to arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod

from compiler.runtime.sample_calls import TimedSamples


class DeviceCall(ABC):
    """What `CudaModule.bind` returns: it runs a kernel on arrays, and times it."""

    @abstractmethod
    def __call__(self) -> None:
        """Run the kernel once."""

    @abstractmethod
    def mean_secs(self, calls: int) -> float:
        """Return the mean seconds a run on the GPU, over `calls` runs; an estimate if emulated."""

    @abstractmethod
    def event_secs(self, calls: int) -> float:
        """Return the mean seconds of `calls` runs, each timed by events, also if they are short.

        Kernels beside functions of libraries are timed so: no graph may hold those.
        """

    @abstractmethod
    def warm_secs(self, calls: int) -> float:
        """Return the mean seconds of `calls` runs in a row: their arrays are in the L2 cache.

        Arrays that do not fit are not there.
        """

    @abstractmethod
    def sample(self, incumbent_secs: float | None) -> TimedSamples:
        """Return samples of the kernel, few if it is far slower than the best known time."""
