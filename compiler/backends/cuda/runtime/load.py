"""Load the kernels of an artifact on a GPU of this host."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from compiler.backends.cuda.device_code import DeviceCode
from compiler.backends.cuda.runtime.host_gpus import HostGpu, driver_cuda_version, host_gpus
from compiler.runtime.artifact import Artifact, ArtifactError
from compiler.target.cuda import CudaTarget

if TYPE_CHECKING:
    from compiler.backends.cuda.runtime.gpu_call import GpuKernels

# Cubins of NVRTC 13.x run with each driver of CUDA 13, and with none before.
_OLDEST_DRIVER = (13, 0)


def load_on_gpu(artifact: Artifact, code: DeviceCode) -> GpuKernels:
    """Load the kernels of an artifact on the first GPU of its target.

    Raises:
        ArtifactError: If this host has no such GPU, no CuPy, or a driver that is too old; with
            what to do.
    """
    target = CudaTarget(artifact.target)
    gpus = host_gpus()
    gpu = next((gpu for gpu in gpus if _runs(gpu, target)), None)
    if gpu is None:
        products = ", ".join(gpu.product for gpu in gpus) or "no GPU"
        raise ArtifactError(
            f"{artifact.name} was built for {target.name}, and this host has {products}: run it on "
            f"a host with that GPU, or build it for '{target.name} -emulated' to run it on the "
            "CPU; lw.inspect shows its code and resources"
        )
    driver = driver_cuda_version()
    if driver is None or driver < _OLDEST_DRIVER:
        versions = "an unknown version" if driver is None else "CUDA {}.{}".format(*driver)
        raise ArtifactError(
            f"{artifact.name} requires a driver of CUDA {_OLDEST_DRIVER[0]}.{_OLDEST_DRIVER[1]} or "
            f"later, and that of {gpu.product} supports {versions}: update the driver"
        )
    if importlib.util.find_spec("cupy") is None:
        raise ArtifactError(
            f"{artifact.name} is launched by CuPy, which this host lacks: "
            "pip install 'loopwright[gpu]'"
        )
    # Imported on first use: CuPy, of an extra, takes 0.7 s.
    from compiler.backends.cuda.runtime.gpu_call import GpuKernels  # noqa: PLC0415

    return GpuKernels(code, gpu.index)


def _runs(gpu: HostGpu, target: CudaTarget) -> bool:
    """Return whether a GPU has the model of a target, or its architecture if it names none."""
    offered = gpu.target
    return offered is not None and (
        offered == target if target.gpu is not None else offered.arch == target.arch
    )
