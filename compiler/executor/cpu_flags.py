"""From LLVM's names of CPU features to the flags of `/proc/cpuinfo`.

A device has no LLVM that could detect its features. Linux's names are those of
arch/x86/include/asm/cpufeatures.h, Documentation/arch/arm64/elf_hwcaps.rst, arch/arm's
uapi/asm/hwcap.h and Documentation/arch/riscv/uabi.rst.
"""

from __future__ import annotations

from .machine import TILE_FLAG

# Features whose instructions LLVM uses without being asked, or that kernels call by name. Others,
# such as those for random numbers, are of no use to kernels.
_RENAMED = {
    "amx-tile": TILE_FLAG,
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahf_lm",
    "sse3": "pni",
    "avx512bf16": "avx512_bf16",
    "avx512bitalg": "avx512_bitalg",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avxvnni": "avx_vnni",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512fp16": "avx512_fp16",
    "avxvnniint8": "avx_vnni_int8",
    "avxvnniint16": "avx_vnni_int16",
    "avxifma": "avx_ifma",
    "avxneconvert": "avx_ne_convert",
    "amx-int8": "amx_int8",
    "amx-bf16": "amx_bf16",
    "amx-fp16": "amx_fp16",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    "neon": "asimd",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
}
_SAME = frozenset(
    (
        *("adx", "avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512ifma"),
        *("avx512vbmi", "avx512vl", "bf16", "bmi2", "cx16", "f16c", "fma", "fma4", "gfni"),
        *("i8mm", "movbe", "popcnt", "sse", "sse2", "sse4a", "ssse3", "sve", "sve2", "tbm"),
        "xop",
    )
)


# Of 32-bit ARM, and of RISC-V: there LLVM and Linux have other names, or the same ones.
_OF_ARM32 = {"neon": "neon", "fp16": "half", "vfp4": "vfpv4", "hwdiv-arm": "idiva"}
_OF_RISCV = frozenset(("a", "c", "d", "f", "m", "v", "zba", "zbb", "zfh", "zvfh"))


def cpu_flags(features: str, arch: str) -> tuple[str, ...]:
    """Return the flags of `/proc/cpuinfo` that code needs, in alphabetical order.

    Args:
        features: The features that the code may use, as LLVM's text: `+avx2,-sse4a,...`.
        arch: The architecture by the name of Linux or of LLVM.
    """
    names = [name[1:] for name in features.split(",") if name.startswith("+")]
    if arch.startswith("armv7"):
        return tuple(sorted(_OF_ARM32[name] for name in names if name in _OF_ARM32))
    if arch == "riscv64":
        return tuple(sorted(n for n in names if n in _OF_RISCV or n.startswith("zvl")))
    renamed = [_RENAMED[name] for name in names if name in _RENAMED]
    return tuple(sorted({*renamed, *_SAME.intersection(names)}))
