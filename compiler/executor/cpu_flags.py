"""From LLVM's names of CPU features to the flags of `/proc/cpuinfo`.

A device has no LLVM that could detect its features. Linux's names are those of
arch/x86/include/asm/cpufeatures.h, Documentation/arch/arm64/elf_hwcaps.rst, arch/arm's
uapi/asm/hwcap.h and Documentation/arch/riscv/uabi.rst.
"""

from __future__ import annotations

from .machine import TILE_FLAG

# Features whose instructions LLVM uses without being asked, or that kernels call by name.
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
    **dict.fromkeys(("ccmp", "cf", "egpr", "ndd", "nf", "ppx", "push2pop2", "zu"), "apx"),
    "neon": "asimd",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "fp16fml": "asimdfhm",
    "complxnum": "fcma",
    "jsconv": "jscvt",
    "lse": "atomics",
    "rcpc": "lrcpc",
    "rdm": "asimdrdm",
}
# Features that every CPU of its architecture has, or whose instructions only programs use that name
# them, and kernels do not.
_OF_NO_USE = frozenset(
    (
        *("64bit", "cmov", "cx8", "fxsr", "mmx", "x87", "fp-armv8"),
        *("aes", "sha", "sha2", "sha3", "sha512", "sm3", "sm4", "pclmul", "vaes", "vpclmulqdq"),
        *("crc", "crc32", "rand", "rdrnd", "rdseed", "kl", "widekl"),
        *("cldemote", "clflushopt", "clwb", "clzero", "prefetchi", "prfchw", "wbnoinvd"),
        *("enqcmd", "fsgsbase", "hreset", "invpcid", "lwp", "movdir64b", "movdiri", "movrs"),
        *("mwaitx", "pconfig", "pku", "ptwrite", "rdpid", "rdpru", "rtm", "serialize", "sgx"),
        *("shstk", "tsxldtrk", "uintr", "usermsr", "waitpkg"),
        *("xsave", "xsavec", "xsaveopt", "xsaves"),
        *("amx-avx512", "amx-complex", "amx-fp8", "amx-movrs", "amx-tf32", "avx512vp2intersect"),
        *("avx10.1",),  # which brings the AVX-512 that the other names state
        *("sve-aes", "sve-bitperm", "sve-sha3", "sve-sm4", "sve2-aes", "sve2-bitperm"),
        *("sve2-sha3", "sve2-sm4"),
    )
)
# Of 32-bit ARM.
_OF_ARM32 = {"neon": "neon", "fp16": "half", "vfp4": "vfpv4", "hwdiv-arm": "idiva"}


def cpu_flags(features: str, arch: str) -> tuple[str, ...]:
    """Return the flags of `/proc/cpuinfo` that code needs, in alphabetical order.

    A feature that is unknown here, of a later version, is its own flag: no CPU has that.

    Args:
        features: The features that the code may use, as LLVM's text: `+avx2,-sse4a,...`.
        arch: The architecture by the name of Linux or of LLVM.
    """
    names = [name[1:] for name in features.split(",") if name.startswith("+")]
    if arch == "riscv64":
        return tuple(sorted(names))
    renamed = _OF_ARM32 if arch.startswith("armv7") else _RENAMED
    return tuple(sorted({renamed.get(name, name) for name in names if name not in _OF_NO_USE}))
