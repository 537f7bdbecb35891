"""Features of CPUs that code may use, by LLVM's names, and changes of a CPU's list (`-mattr`).

A feature brings those that it requires, and cannot be removed without those that require it: LLVM
applies the same rules, and code must not call an instruction that LLVM has been told to avoid.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from compiler.target.cpus import Arch
from compiler.target.error import TargetError

# By architecture, each feature with those that it requires, as LLVM's tables have them (X86.td,
# AArch64Features.td, ARMFeatures.td, RISCVFeatures.td). Features that kernels do not use are left
# out.
_REQUIRED: dict[Arch, Mapping[str, tuple[str, ...]]] = {
    "x86_64": {
        **dict.fromkeys(("sse2", "cx16", "popcnt", "sahf", "bmi", "bmi2", "lzcnt", "movbe"), ()),
        **dict.fromkeys(("xsave", "amx-tile"), ()),
        "sse3": ("sse2",),
        "ssse3": ("sse3",),
        "sse4.1": ("ssse3",),
        "sse4.2": ("sse4.1",),
        "avx": ("sse4.2",),
        **dict.fromkeys(("avx2", "f16c", "fma", "fma4", "vaes", "vpclmulqdq", "xop"), ("avx",)),
        "avx512f": ("avx2", "f16c", "fma"),
        **dict.fromkeys(("avx512bw", "avx512cd", "avx512dq", "avx512vl"), ("avx512f",)),
        **dict.fromkeys(("avx512vnni", "avx512ifma", "avx512vpopcntdq"), ("avx512f",)),
        **dict.fromkeys(("avx512bitalg", "avx512vbmi", "avx512vbmi2"), ("avx512bw",)),
        "avx512bf16": ("avx512bw",),
        "avx512fp16": ("avx512bw", "avx512dq", "avx512vl"),
        **dict.fromkeys(("avxvnni", "avxvnniint8", "avxvnniint16", "avxifma"), ("avx2",)),
        **dict.fromkeys(("amx-bf16", "amx-int8"), ("amx-tile",)),
    },
    "aarch64": {
        "neon": (),
        **dict.fromkeys(("bf16", "dotprod", "fullfp16", "i8mm"), ("neon",)),
        "sve": ("fullfp16",),
    },
    "armv7l": {
        **dict.fromkeys(("neon", "hwdiv-arm"), ()),
        "fp16": ("neon",),
        "vfp4": ("fp16",),
    },
    "riscv64": {
        **dict.fromkeys(("m", "a", "f", "d", "c", "v", "zba", "zbb"), ()),
        "zfh": ("f",),
        "zvfh": ("v", "zfh"),
        **{f"zvl{bits}b": ("v",) for bits in (128, 256, 512, 1024)},
    },
}
# What code for an architecture uses without being asked.
_BASELINE: dict[Arch, Collection[str]] = {
    "x86_64": ("sse2",),
    "aarch64": ("neon",),
    "armv7l": ("neon",),
    "riscv64": ("m", "a", "f", "d", "c", "v"),
}


def changed_features(arch: Arch, base: str, changes: str) -> tuple[str, str]:
    """Return the features of a CPU after changes, and the changes in their shortest form.

    Args:
        arch: The architecture.
        base: The features of the CPU, as LLVM's text: `+avx2,-sse4a,...`.
        changes: Features to add and to remove, such as `+dotprod,-fullfp16`. The last one of
            several that contradict each other counts.

    Raises:
        TargetError: If a change is malformed, unknown, or removes what all code uses.
    """
    before = {name[1:] for name in base.split(",") if name.startswith("+")}
    names = set(before)
    for change in filter(None, changes.split(",")):
        _apply(arch, names, change)
    added, removed = names - before, before - names
    listed = [name for name in base.split(",") if name[1:] not in added | removed]
    text = ",".join(
        [*listed, *(f"+{n}" for n in sorted(added)), *(f"-{n}" for n in sorted(removed))]
    )
    required = _REQUIRED[arch]
    implied = {name for other in added for name in required.get(other, ())}
    roots = {name for name in removed if removed.isdisjoint(required.get(name, ()))}
    shortest = [*(f"+{n}" for n in sorted(added - implied)), *(f"-{n}" for n in sorted(roots))]
    return text, ",".join(shortest)


def _apply(arch: Arch, names: set[str], change: str) -> None:
    required = _REQUIRED[arch]
    match = re.fullmatch(r"([+-])(.+)", change)
    if match is None:
        raise TargetError(f"bad feature {change!r} in -mattr: expected +NAME or -NAME")
    sign, name = match.groups()
    if name not in required:
        near = difflib.get_close_matches(name, required, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(required))}"
        raise TargetError(f"unknown feature {name!r} of {arch} in -mattr: {hint}")
    if sign == "+":
        names |= _closure(name, required)
        return
    dependents = {other for other in required if name in _closure(other, required)}
    if lost := dependents.intersection(_BASELINE[arch]):
        raise TargetError(f"-mattr=-{name}: all code for {arch} uses {', '.join(sorted(lost))}")
    names -= dependents


def _closure(name: str, required: Mapping[str, tuple[str, ...]]) -> set[str]:
    return {name}.union(*(_closure(other, required) for other in required[name]))
