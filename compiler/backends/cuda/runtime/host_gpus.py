"""The GPUs of this host, as NVIDIA's management library (NVML) reports them.

NVML comes with the driver; the wheel `nvidia-ml-py` (extra `[gpu]`) calls it. It creates no context
on a device, so any process may ask.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from compiler.backends.host_device import HostDevice
from compiler.target.cuda import CudaTarget
from compiler.target.gpus import ARCHS, GPUS

# The words in the product name that tell models apart, as NVML spells them. The first line of
# which all words occur names the model.
_MODELS = (
    (("H200",), "h200"),
    (("H100", "PCIe"), "h100-pcie"),
    (("H100", "HBM3"), "h100-sxm"),
    (("A100",), "a100"),
    (("L40S",), "l40s"),
    (("B200",), "b200"),
    (("RTX PRO 6000",), "rtx-pro-6000"),
)


_VISIBLE = "CUDA_VISIBLE_DEVICES"
"""The environment variable by which CUDA limits a process to some GPUs."""


@dataclass(frozen=True, slots=True)
class HostGpu:
    """A GPU of this host.

    Attributes:
        index: Its number on this host for NVML, which orders GPUs by their PCI addresses.
        uuid: Its identity, which no other device has.
        product: The name of the product, such as "NVIDIA H200".
        capability: The compute capability, such as (9, 0).
    """

    index: int
    uuid: str
    product: str
    capability: tuple[int, int]

    @property
    def target(self) -> CudaTarget | None:
        """Return the target of its kernels; None if its architecture is not in the table."""
        model = model_of(self.product)
        if model is not None:
            return CudaTarget(f"cuda -gpu={model}")
        arch = "sm_{}{}".format(*self.capability)
        for name in (f"{arch}a", arch):  # the names with "a" have the instructions of one family
            if name in ARCHS:
                return CudaTarget(f"cuda -arch={name}")
        return None

    @property
    def device(self) -> HostDevice | None:
        """Return the device that a worker measures on; None without a target."""
        target = self.target
        if target is None:
            return None
        name = f"{target.label.removeprefix('cuda/')}-{self.index}"
        return HostDevice(target, name, self.product, self.uuid, {_VISIBLE: self.uuid})


@dataclass(frozen=True, slots=True)
class GpuState:
    """The state of a GPU at one moment.

    Attributes:
        sm_mhz: The clock of the multiprocessors.
        watts: The power that it draws.
        celsius: Its temperature.
        slowed_by: Why its clock is lower than it could be, in words; see `THROTTLE_REASONS`.
    """

    sm_mhz: int
    watts: float
    celsius: int
    slowed_by: tuple[str, ...]

    @property
    def is_throttled(self) -> bool:
        """Return whether measurements at this moment are not valid.

        The power cap is in force during each large product, so it does not count.
        """
        return any(reason != POWER_CAP for reason in self.slowed_by)


POWER_CAP = "power cap"
# The bits are those of `nvmlClocksEventReasons` in NVML's reference.
THROTTLE_REASONS = {
    0x4: POWER_CAP,
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


def model_of(product: str) -> str | None:
    """Return the key of a product in `GPUS`; None if it is not in the table."""
    for words, model in _MODELS:
        if all(re.search(rf"\b{re.escape(word)}", product) for word in words):
            assert model in GPUS
            return model
    return None


def host_gpus() -> list[HostGpu]:
    """Return the GPUs that this process may use; empty without a driver or `nvidia-ml-py`."""
    with _nvml() as nvml:
        if nvml is None:
            return []
        handles = (nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount()))
        gpus = [
            HostGpu(
                index,
                nvml.nvmlDeviceGetUUID(handle),
                nvml.nvmlDeviceGetName(handle),
                tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle)),
            )
            for index, handle in enumerate(handles)
        ]
    return visible_gpus(gpus, os.environ.get(_VISIBLE))


def visible_gpus(gpus: Sequence[HostGpu], variable: str | None) -> list[HostGpu]:
    """Return the GPUs that `CUDA_VISIBLE_DEVICES` allows, in its order; NVML reports all.

    Args:
        gpus: All GPUs of the host.
        variable: The value of the variable, numbers or UUIDs; None if it is not set. As in CUDA,
            what follows an unknown GPU is left out, and a UUID may be shortened to a prefix.
    """
    if variable is None:
        return list(gpus)
    visible: list[HostGpu] = []
    for entry in (text.strip() for text in variable.split(",")):
        is_uuid = entry.startswith("GPU-")
        named = [
            g for g in gpus if (g.uuid.startswith(entry) if is_uuid else f"{g.index}" == entry)
        ]
        if len(named) != 1 or named[0].uuid in {gpu.uuid for gpu in visible}:
            break
        visible.append(named[0])
    return visible


def state_of(uuid: str) -> GpuState | None:
    """Return the current state of a GPU; None if NVML does not report it."""
    with _nvml() as nvml:
        if nvml is None:
            return None
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
            reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            return GpuState(
                nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
                nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                tuple(text for bit, text in THROTTLE_REASONS.items() if reasons & bit),
            )
        except nvml.NVMLError:
            return None


def uuid_at(bus_id: str) -> str | None:
    """Return the identity of the GPU at an address of the PCI bus; None without NVML.

    CUDA and NVML number GPUs in different orders; the address is the same for both.
    """
    with _nvml() as nvml:
        if nvml is None:
            return None
        uuid: str = nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetHandleByPciBusId(bus_id))
        return uuid


@cache
def keep_nvml() -> None:
    """Keep NVML open in this process: queries then take microseconds, instead of its start."""
    with suppress(ImportError):
        import pynvml  # noqa: PLC0415  (an extra)

        with suppress(pynvml.NVMLError):
            pynvml.nvmlInit()


def driver_cuda_version() -> tuple[int, int] | None:
    """Return the newest version of CUDA that the driver supports; None without a driver."""
    with _nvml() as nvml:
        if nvml is None:
            return None
        version = nvml.nvmlSystemGetCudaDriverVersion_v2()
        return version // 1000, version % 1000 // 10


@contextmanager
def _nvml() -> Iterator[ModuleType | None]:
    """Give NVML while the body runs; None if this host does not have it."""
    try:
        import pynvml  # noqa: PLC0415  (an extra)
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()
