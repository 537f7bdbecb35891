"""The GPU that a benchmark uses: one of this host, or an emulated one."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict, dataclass
from typing import Any

from compiler.backends.cuda.nvrtc import nvrtc_release
from compiler.backends.cuda.runtime.host_gpus import (
    GpuState,
    HostGpu,
    driver_cuda_version,
    host_gpus,
    state_of,
)
from compiler.target.cuda import CudaTarget
from compiler.target.gpus import Gpu, nearest_gpu

_PACKAGES = ("cupy-cuda13x", "torch", "triton", "numpy")


class NoGpuError(Exception):
    """This host has no GPU that the benchmarks can use."""


@dataclass(frozen=True)
class BenchGpu:
    """A GPU.

    Attributes:
        target: The target of its kernels.
        host_gpu: The GPU of this host; None if it is emulated.
    """

    target: CudaTarget
    host_gpu: HostGpu | None

    @property
    def is_emulated(self) -> bool:
        """Whether times are estimates."""
        return self.host_gpu is None

    @property
    def model(self) -> Gpu:
        """The data sheet of the GPU, or of the nearest model."""
        return self.target.gpu or nearest_gpu(self.target.arch)

    def state(self) -> GpuState | None:
        """Return its clock, power and temperature; None if they are unknown."""
        return None if self.host_gpu is None else state_of(self.host_gpu.uuid)

    def facts(self) -> dict[str, Any]:
        """Return what identifies its software and hardware, for a file of results."""
        state = self.state()
        return {
            "target": self.target.name,
            "is_estimate": self.is_emulated,
            "product": None if self.host_gpu is None else self.host_gpu.product,
            "driver_cuda": driver_cuda_version(),
            "state": None if state is None else asdict(state),
            "versions": {"nvrtc": nvrtc_release(), **_versions()},
        }


def find_gpu(emulated: str | None) -> BenchGpu:
    """Return the first GPU of this host, or an emulated one by its name.

    Raises:
        NoGpuError: If this host has no GPU of a supported architecture.
        TargetError: If the emulated GPU is unknown.
    """
    if emulated is not None:
        return BenchGpu(CudaTarget(f"cuda -gpu={emulated} -emulated"), None)
    for gpu in host_gpus():
        if gpu.target is not None:
            return BenchGpu(gpu.target, gpu)
    raise NoGpuError(
        "this host has no GPU that these benchmarks can use: --emulate h200 --tiny runs them in "
        "shape, with estimates instead of times"
    )


def _versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
