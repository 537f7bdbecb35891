"""Named GPUs: the limits of their architectures, and the rates of each model.

Limits are those of the table "Technical Specifications per Compute Capability" in the CUDA C++
Programming Guide. Rates are the dense ones of NVIDIA's data sheets, without sparsity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_KIB, _MIB = 1 << 10, 1 << 20
WARP_SIZE = 32


@dataclass(frozen=True, slots=True)
class GpuArch:
    """The limits of an architecture.

    Attributes:
        shared_bytes: The shared memory that a block may allocate with an opt-in.
        shared_bytes_of_sm: The shared memory of a multiprocessor, for all its blocks.
        max_warps: The warps that a multiprocessor runs at once.
        max_blocks: The blocks that a multiprocessor runs at once.
        capability: The compute capability, such as 89.
        has_wgmma: Whether it has the products of warpgroups, and the tensor memory accelerator.
    """

    shared_bytes: int
    shared_bytes_of_sm: int
    max_warps: int
    max_blocks: int
    max_threads: int = 1024
    max_registers: int = 255
    registers_of_sm: int = 65536
    static_shared_bytes: int = 48 * _KIB
    max_vector_bytes: int = 16
    capability: int = 80
    has_wgmma: bool = False


ARCHS: Mapping[str, GpuArch] = MappingProxyType(
    {
        "sm_80": GpuArch(163 * _KIB, 164 * _KIB, 64, 32),
        "sm_86": GpuArch(99 * _KIB, 100 * _KIB, 48, 16, capability=86),
        "sm_89": GpuArch(99 * _KIB, 100 * _KIB, 48, 24, capability=89),
        "sm_90": GpuArch(227 * _KIB, 228 * _KIB, 64, 32, capability=90),
        "sm_90a": GpuArch(227 * _KIB, 228 * _KIB, 64, 32, capability=90, has_wgmma=True),
        "sm_100a": GpuArch(227 * _KIB, 228 * _KIB, 64, 32, capability=100),
        "sm_120": GpuArch(99 * _KIB, 100 * _KIB, 48, 24, capability=120),
    }
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A model of GPU.

    Attributes:
        arch: The architecture to compile for.
        num_sms: The number of multiprocessors.
        l2_bytes: The size of the second-level cache.
        memory_rate: The bandwidth of the memory, in bytes per second.
        peaks: The rate of each type in FLOP/s; `tf32` is float32 on tensor cores.
    """

    arch: str
    num_sms: int
    l2_bytes: int
    memory_rate: float
    peaks: Mapping[str, float]


def _gpu(
    arch: str, num_sms: int, l2_mib: int, tera_bytes: float, rates: tuple[float, float, float]
) -> Gpu:
    """Return a GPU from its data sheet.

    Args:
        arch: The architecture.
        num_sms: The number of multiprocessors.
        l2_mib: The second-level cache in MiB.
        tera_bytes: The bandwidth of the memory in TB/s.
        rates: TFLOP/s of float32, and of 16-bit and 8-bit types on tensor cores; 0 without them.
    """
    fp32, half, fp8 = rates
    by_type = {"float32": fp32, "tf32": half / 2, "bfloat16": half, "float16": half, "float8": fp8}
    peaks = {name: rate * 1e12 for name, rate in by_type.items() if rate}
    return Gpu(arch, num_sms, l2_mib * _MIB, tera_bytes * 1e12, MappingProxyType(peaks))


GPUS: Mapping[str, Gpu] = MappingProxyType(
    {
        "a100": _gpu("sm_80", 108, 40, 2.039, (19.5, 312, 0)),
        "l40s": _gpu("sm_89", 142, 96, 0.864, (91.6, 362, 733)),
        "h100-pcie": _gpu("sm_90a", 114, 50, 2.0, (51, 756, 1513)),
        "h100-sxm": _gpu("sm_90a", 132, 50, 3.35, (67, 989, 1979)),
        "h200": _gpu("sm_90a", 132, 60, 4.8, (67, 989, 1979)),
        "b200": _gpu("sm_100a", 148, 126, 7.7, (75, 2250, 4500)),
        "rtx-pro-6000": _gpu("sm_120", 188, 128, 1.792, (125, 503, 1007)),
    }
)


def nearest_gpu(arch: str) -> Gpu:
    """Return the first model of the architecture whose number is nearest."""
    return min(GPUS.values(), key=lambda gpu: abs(_number(gpu.arch) - _number(arch)))


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_").removesuffix("a"))
