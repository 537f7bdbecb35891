"""Kernel sets: the code that a library chooses for a CPU, and the settings that change it.

A library that does not know a new CPU falls back to the code of an older one, and a variable of the
host may choose it: with its Haswell kernels on a Zen 5, OpenBLAS reaches less than half of the
CPU's rate. A comparison with such a library is meaningless, so each kernel set has the level of the
x86-64 psABI that its code uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# What a level needs beyond the one below it, by LLVM's names of features.
_FEATURES = {
    4: ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    3: ("avx2", "fma", "bmi2", "f16c"),
    2: ("sse4.2", "popcnt"),
}
# OpenBLAS's names of cores, from its `cpuid_x86.c`, by the instructions of their kernels.
_OPENBLAS = {
    4: ("SkylakeX", "Cooperlake", "SapphireRapids"),
    3: ("Haswell", "Zen", "Excavator"),
    2: ("Nehalem", "Sandybridge", "Bulldozer", "Piledriver", "Steamroller"),
}
_BEST_OPENBLAS = {4: "SkylakeX", 3: "Haswell", 2: "Nehalem"}
# What PyTorch calls its own kernels.
_PYTORCH = {4: ("AVX512",), 3: ("AVX2",), 2: ("DEFAULT",)}
_LEVELS = {
    name.lower(): level
    for names in (_OPENBLAS, _PYTORCH)
    for level, group in names.items()
    for name in group
}
CORE_TYPE = "OPENBLAS_CORETYPE"


@dataclass(frozen=True, slots=True)
class LibraryCode:
    """The code that a library uses here.

    Attributes:
        name: The library's name of it; empty if unknown.
        is_chosen_by: The environment variable that chooses another; empty if there is none.
    """

    name: str = ""
    is_chosen_by: str = ""


def cpu_level(features: str) -> int:
    """Return the level of the x86-64 psABI that a CPU has, by LLVM's text of its features."""
    has = set(features.split(","))
    for level, required in _FEATURES.items():
        if all(f"+{name}" in has for name in required):
            return level
    return 1


def set_level(kernel_set: str) -> int | None:
    """Return the level that a kernel set uses; none for one that is not known."""
    return _LEVELS.get(kernel_set.lower())


def is_below(kernel_set: str, features: str) -> bool:
    """Return whether a kernel set is known to leave a part of the CPU's instruction set unused."""
    level = set_level(kernel_set)
    return level is not None and level < cpu_level(features)


def better_settings(chosen: LibraryCode, features: str) -> list[Mapping[str, str]]:
    """Return environments in which a library may use more of the CPU than it does by default."""
    chosen_level = set_level(chosen.name)
    if chosen.is_chosen_by != CORE_TYPE or chosen_level is None:
        return []
    above = range(cpu_level(features), chosen_level, -1)
    return [{CORE_TYPE: _BEST_OPENBLAS[level]} for level in above if level in _BEST_OPENBLAS]
