"""Named CPUs to compile for, with LLVM's names of them and of their features.

Code for a named CPU uses the features of its level of the x86-64 psABI, and the instructions for
dot products of bytes and of bfloat16, and for sums in float16, if the CPU has them. If models of a
CPU differ in caches, the sizes are those of a usual model.

Sizes of caches are those of the vendors' manuals and product briefs. A second level that cores
share is divided by them; without a third level, the whole second level is the last one. Beyond the
first level, those of SiFive's X280 are a choice of who builds it, and assumed here. Of
AArch64's Scalable Vector Extension, code uses only the masks: on Neoverse V1, which has two units
of 256 bits and four of 128, wider vectors would have the same peak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from compiler.target import pipelines
from compiler.target.pipelines import Pipelines

Arch = Literal["x86_64", "aarch64", "armv7l", "riscv64"]
"""An architecture by Linux's name."""

# The features that each level of the x86-64 psABI adds.
_LEVELS = {
    1: "+sse2",
    2: "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3",
    3: "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave",
    4: "+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl",
}
_KIB, _MIB = 1 << 10, 1 << 20

_Sizes: TypeAlias = tuple[int, int, float]
"""A core's data cache and its share of the second level in KiB, the last level in MiB."""


@dataclass(frozen=True, slots=True)
class Caches:
    """Sizes in bytes: a core's data cache, a core's share of the second level, the last level."""

    l1_bytes: int
    l2_bytes: int
    l3_bytes: int


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU: an instruction set by LLVM's name, additional features, pipelines, and caches."""

    arch: Arch
    instruction_set: str
    features: str
    pipelines: Pipelines
    caches: Caches


def _x86(level: int, core: Pipelines, sizes: _Sizes, more: str = "") -> Cpu:
    features = ",".join([*(_LEVELS[n] for n in range(1, level + 1)), *([more] if more else [])])
    name = f"x86-64-v{level}" if level > 1 else "x86-64"
    return Cpu("x86_64", name, features, core, _caches(sizes))


def _arm(core: Pipelines, sizes: _Sizes, features: str = "+neon") -> Cpu:
    return Cpu("aarch64", "generic", features, core, _caches(sizes))


def _arm32(core: Pipelines, sizes: _Sizes, features: str) -> Cpu:
    """Return a CPU of 32 bits with vectors (ARMv7-A, NEON); all of them convert halves."""
    return Cpu("armv7l", "generic", f"+neon,+fp16{features}", core, _caches(sizes))


def _riscv(core: Pipelines, vector_bits: int, sizes: _Sizes) -> Cpu:
    """Return a CPU with vectors (RVV 1.0), which hold halves, too."""
    features = f"+m,+a,+f,+d,+c,+zba,+zbb,+v,+zfh,+zvfh,+zvl{vector_bits}b"
    return Cpu("riscv64", "generic-rv64", features, core, _caches(sizes))


def _caches(sizes: _Sizes) -> Caches:
    l1_kib, l2_kib, l3_mib = sizes
    return Caches(l1_kib * _KIB, l2_kib * _KIB, int(l3_mib * _MIB))


_VNNI, _AVX_VNNI, _BF16 = "+avx512vnni", "+avxvnni", "+avx512bf16"
_AMX = "+amx-tile,+amx-bf16,+amx-int8"
_SAPPHIRE_RAPIDS = f"{_VNNI},{_AVX_VNNI},{_BF16},+avx512fp16,{_AMX}"
_INT8_VNNI = f"{_AVX_VNNI},+avxvnniint8"
_DOTS = "+neon,+dotprod,+fullfp16"
_MIXED_DOTS = f"{_DOTS},+i8mm,+bf16"
_MASKS = f"{_MIXED_DOTS},+sve"

CPUS: dict[str, Cpu] = {
    "x86-64": _x86(1, pipelines.USUAL, (32, 256, 8)),
    "x86-64-v2": _x86(2, pipelines.USUAL, (32, 256, 8)),
    "nehalem": _x86(2, pipelines.NEHALEM, (32, 256, 8)),
    "x86-64-v3": _x86(3, pipelines.USUAL, (32, 512, 16)),
    "haswell": _x86(3, pipelines.HASWELL, (32, 256, 8)),
    "broadwell": _x86(3, pipelines.HASWELL, (32, 256, 8)),
    "skylake": _x86(3, pipelines.SKYLAKE, (32, 256, 8)),
    "alderlake": _x86(3, pipelines.GOLDEN_COVE_CLIENT, (48, 1280, 30), _AVX_VNNI),
    "raptorlake": _x86(3, pipelines.GOLDEN_COVE_CLIENT, (48, 2048, 36), _AVX_VNNI),
    "arrowlake": _x86(3, pipelines.LION_COVE, (48, 3072, 36), _INT8_VNNI),
    "sierraforest": _x86(3, pipelines.CRESTMONT, (32, 1024, 108), _INT8_VNNI),
    "znver1": _x86(3, pipelines.ZEN1, (32, 512, 8)),
    "znver2": _x86(3, pipelines.ZEN2, (32, 512, 16)),
    "znver3": _x86(3, pipelines.ZEN3, (32, 512, 32)),
    "x86-64-v4": _x86(4, pipelines.USUAL, (32, 1024, 32)),
    "skylake-avx512": _x86(4, pipelines.SKYLAKE, (32, 1024, 24.75)),
    "cascadelake": _x86(4, pipelines.SKYLAKE, (32, 1024, 35.75), _VNNI),
    "cooperlake": _x86(4, pipelines.SKYLAKE, (32, 1024, 38.5), f"{_VNNI},{_BF16}"),
    "icelake-client": _x86(4, pipelines.ICELAKE_CLIENT, (48, 512, 8), _VNNI),
    "icelake-server": _x86(4, pipelines.ICELAKE_SERVER, (48, 1280, 48), _VNNI),
    "sapphirerapids": _x86(4, pipelines.GOLDEN_COVE, (48, 2048, 105), _SAPPHIRE_RAPIDS),
    "emeraldrapids": _x86(4, pipelines.GOLDEN_COVE, (48, 2048, 320), _SAPPHIRE_RAPIDS),
    "graniterapids": _x86(4, pipelines.GOLDEN_COVE, (48, 2048, 480), _SAPPHIRE_RAPIDS),
    "znver4": _x86(4, pipelines.ZEN4, (32, 1024, 32), f"{_VNNI},{_BF16}"),
    "znver5": _x86(4, pipelines.ZEN5, (48, 1024, 32), f"{_VNNI},{_AVX_VNNI},{_BF16}"),
    "cortex-a7": _arm32(pipelines.CORTEX_A7, (32, 128, 0.5), ",+vfp4,+hwdiv-arm"),
    "cortex-a9": _arm32(pipelines.CORTEX_A9, (32, 256, 0.5), ""),
    "cortex-a15": _arm32(pipelines.CORTEX_A15, (32, 512, 2), ",+vfp4,+hwdiv-arm"),
    "cortex-a53": _arm(pipelines.CORTEX_A53, (32, 128, 0.5)),
    "cortex-a72": _arm(pipelines.CORTEX_A72, (32, 256, 1)),
    "cortex-a76": _arm(pipelines.CORTEX_A76, (64, 256, 2), _DOTS),
    "neoverse-n1": _arm(pipelines.CORTEX_A76, (64, 1024, 32), _DOTS),
    "neoverse-n2": _arm(pipelines.NEOVERSE_N2, (64, 1024, 64), _MASKS),
    "neoverse-v1": _arm(pipelines.NEOVERSE_V1, (64, 1024, 32), _MASKS),
    "neoverse-v2": _arm(pipelines.NEOVERSE_V2, (64, 2048, 36), _MASKS),
    "ampere1": _arm(pipelines.AMPERE1, (64, 2048, 64), _MIXED_DOTS),
    "apple-m1": _arm(pipelines.FIRESTORM, (128, 3072, 8), _DOTS),
    "sifive-x280": _riscv(pipelines.SIFIVE_X280, 512, (32, 256, 2)),
    "spacemit-x60": _riscv(pipelines.SPACEMIT_X60, 256, (32, 128, 0.5)),
}
# Assumed for a host that is not listed above and reports no caches.
USUAL_CACHES: dict[Arch, Caches] = {
    "x86_64": CPUS["x86-64-v3"].caches,
    "aarch64": CPUS["neoverse-n1"].caches,
    "armv7l": CPUS["cortex-a7"].caches,
    "riscv64": CPUS["spacemit-x60"].caches,
}
