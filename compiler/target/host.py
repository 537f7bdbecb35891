"""The CPU of this host and its features, by LLVM's names.

`LOOPWRIGHT_HOST_CPU` reports the host as another CPU of `compiler/target/cpus.py` whose code it can
run. Targets, labels, caches and the check of loaded code all use the reported CPU. Child processes
inherit the variable, so a service and its workers agree.
"""

from __future__ import annotations

import os
import platform
from functools import lru_cache

import llvmlite.binding as llvm

from compiler.target.cpus import CPUS
from compiler.target.error import TargetError

REPORTED = "LOOPWRIGHT_HOST_CPU"


@lru_cache(maxsize=1)
def host_cpu() -> str:
    """Return LLVM's name of this host's CPU, or of the CPU that it is reported as.

    Raises:
        TargetError: If the reported CPU is unknown, or has features that this host lacks.
    """
    return reported_cpu() or str(llvm.get_host_cpu_name())


@lru_cache(maxsize=1)
def host_features() -> str:
    """Return the features of this host, or of the CPU that it is reported as: `+avx2,-sse4a,...`.

    Raises:
        TargetError: If the reported CPU is unknown, or has features that this host lacks.
    """
    reported = reported_cpu()
    return CPUS[reported].features if reported else detected_features()


@lru_cache(maxsize=1)
def reported_cpu() -> str | None:
    """Return the CPU that this host is reported as, or None.

    Raises:
        TargetError: If it is unknown, or has features that this host lacks.
    """
    name = os.environ.get(REPORTED)
    if not name:
        return None
    if name not in CPUS:
        raise TargetError(f"{REPORTED} is {name!r}: expected one of {', '.join(sorted(CPUS))}")
    if missing := missing_here(name):
        raise TargetError(
            f"{REPORTED} is {name!r}, whose code this host ({llvm.get_host_cpu_name()}) can't run:"
            f" it lacks {', '.join(missing)}; choose a CPU of a lower level, or unset the variable"
        )
    return name


def missing_here(name: str) -> list[str]:
    """Return the features of a CPU of `CPUS` that this machine, as detected, lacks."""
    cpu = CPUS[name]
    if cpu.arch != platform.machine():
        return [cpu.arch]
    here = detected_features().split(",")
    return [feature for feature in cpu.features.split(",") if feature not in here]


@lru_cache(maxsize=1)
def detected_features() -> str:
    """Return the features of this machine, independent of the reported CPU."""
    return str(llvm.get_host_cpu_features().flatten())
