"""Load the kernels of an artifact, and the arrays of a workload, on a GPU of this host."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING

from compiler.backends.cuda.device_code import DeviceCode
from compiler.backends.cuda.runtime.compare import DeviceCase
from compiler.backends.cuda.runtime.host_gpus import (
    HostGpu,
    driver_cuda_version,
    host_gpus,
    uuid_at,
)
from compiler.backends.trial_arrays import TrialArrays
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase
from compiler.target.cuda import CudaTarget

if TYPE_CHECKING:
    from compiler.backends.cuda.runtime.gpu_call import GpuKernels

Version = tuple[int, int]


class DriverTooOldError(ArtifactError):
    """A kernel was compiled by an NVRTC of a later CUDA than the driver supports.

    Attributes:
        required: The version of CUDA that the kernel requires.
        supported: The version that the driver supports; None if it is unknown.
    """

    def __init__(self, name: str, nvrtc: str, required: Version, supported: Version | None) -> None:
        words = "an unknown version of CUDA" if supported is None else _in_words(supported)
        super().__init__(
            f"{name} was compiled by {nvrtc}, whose kernels require a driver of "
            f"{_in_words(required)} or later, and the driver of this host supports {words}: "
            "update the driver"
        )
        self.required = required
        self.supported = supported


def load_on_gpu(artifact: Artifact, code: DeviceCode) -> GpuKernels:
    """Load the kernels of an artifact on the first GPU of its target.

    Raises:
        ArtifactError: If this host has no such GPU, no CuPy, or a driver that is too old; with
            what to do.
    """
    gpu = _gpu_of(artifact.name, CudaTarget(artifact.target))
    require_driver(artifact.name, artifact.toolchain, driver_cuda_version())
    _require_cupy(artifact.name)
    # Imported on first use: CuPy, of an extra, takes 0.7 s.
    from compiler.backends.cuda.runtime.gpu_call import GpuKernels  # noqa: PLC0415

    return GpuKernels(code, _cuda_index(gpu), gpu.uuid)


def trial_arrays_on_gpu(func: PrimFunc, target: CudaTarget, case: CheckCase) -> TrialArrays:
    """Return arrays of a workload on the GPU on which its candidates are loaded.

    Raises:
        ArtifactError: If this host has no such GPU, or no CuPy.
    """
    gpu = _gpu_of(func.name, target)
    _require_cupy(func.name)
    import cupy  # noqa: PLC0415

    from compiler.backends.cuda.runtime.active_gpu import active_gpu  # noqa: PLC0415
    from compiler.backends.cuda.runtime.gpu_trial_arrays import GpuTrialArrays  # noqa: PLC0415

    device = _cuda_index(gpu)
    with active_gpu(device):
        uploaded = DeviceCase(cupy, func, case)
    return GpuTrialArrays(uploaded, device)


def require_gpu(target: CudaTarget, toolchain: str) -> None:
    """Require a GPU of this host for a target, and what its kernels are launched by.

    Args:
        target: The GPU.
        toolchain: The compiler of the kernels, with the version of NVRTC.

    Raises:
        ArtifactError: If something is missing; with what to do.
    """
    _gpu_of("the search", target)
    require_driver("the search", toolchain, driver_cuda_version())
    _require_cupy("a kernel of a GPU")


def require_driver(name: str, toolchain: str, supported: Version | None) -> None:
    """Require that the driver runs code of the NVRTC that compiles a kernel.

    Cubins of NVRTC 13.x run with each driver of CUDA 13 and later ("minor version compatibility" in
    NVIDIA's guide to the compatibility of CUDA), and with none before.

    Args:
        name: The name of the kernel.
        toolchain: The versions of the compiler, among them that of NVRTC.
        supported: The version of CUDA that the driver supports; None if it is unknown.

    Raises:
        DriverTooOldError: If the driver is older.
    """
    match = re.search(r"NVRTC (\d+)\.\d+[.\d]*", toolchain)
    if match is None:
        raise ArtifactError(f"{name} has no version of NVRTC: {toolchain!r}")
    required = int(match[1]), 0
    if supported is None or supported < required:
        raise DriverTooOldError(name, match[0], required, supported)


def _in_words(version: Version) -> str:
    return "CUDA {}.{}".format(*version)


def _gpu_of(name: str, target: CudaTarget) -> HostGpu:
    gpus = host_gpus()
    gpu = next((gpu for gpu in gpus if _runs(gpu, target)), None)
    if gpu is None:
        products = ", ".join(gpu.product for gpu in gpus) or "no GPU"
        raise ArtifactError(
            f"{name} is for {target.name}, and this host has {products}: run it on "
            f"a host with that GPU, or build it for '{target.name} -emulated' to run it on the "
            "CPU; lw.inspect shows its code and resources"
        )
    return gpu


def _require_cupy(name: str) -> None:
    if importlib.util.find_spec("cupy") is None:
        raise ArtifactError(
            f"{name} is launched by CuPy, which this host lacks: pip install 'loopwright[gpu]'"
        )


def _cuda_index(gpu: HostGpu) -> int:
    """Return the number of a GPU for CUDA, which may hide some GPUs, and orders them by speed."""
    import cupy  # noqa: PLC0415  (an extra)

    runtime = cupy.cuda.runtime
    for index in range(runtime.getDeviceCount()):
        if uuid_at(runtime.deviceGetPCIBusId(index)) == gpu.uuid:
            return index
    raise ArtifactError(f"{gpu.product} ({gpu.uuid}) is hidden from CUDA: see CUDA_VISIBLE_DEVICES")


def open_context() -> None:
    """Make a context on the first GPU that this process may use; it takes a second.

    Nothing happens without CuPy: `load_on_gpu` reports that.
    """
    if importlib.util.find_spec("cupy") is None:
        return
    import cupy  # noqa: PLC0415  (an extra)

    from compiler.backends.cuda.runtime.gpu_call import GpuKernels  # noqa: F401, PLC0415

    cupy.cuda.runtime.free(0)  # the runtime makes its context with the first call


def _runs(gpu: HostGpu, target: CudaTarget) -> bool:
    """Return whether a GPU has the model of a target, or its architecture if it names none."""
    offered = gpu.target
    return offered is not None and (
        offered == target if target.gpu is not None else offered.arch == target.arch
    )
