"""What this host is: its CPU and the features of it, as LLVM names them.

`LOOPWRIGHT_HOST_CPU` reports the host as another CPU of `compiler/target/cpus.py` whose code it can
run: targets, labels, caches and the check of what may be loaded all follow it. Child processes
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
        TargetError: If the reported CPU is unknown, or has what this host lacks.
    """
    return reported_cpu() or str(llvm.get_host_cpu_name())


@lru_cache(maxsize=1)
def host_features() -> str:
    """Return the features of this host, or of the CPU that it is reported as: `+avx2,-sse4a,...`.

    Raises:
        TargetError: If the reported CPU is unknown, or has what this host lacks.
    """
    reported = reported_cpu()
    return CPUS[reported].features if reported else detected_features()


@lru_cache(maxsize=1)
def reported_cpu() -> str | None:
    """Return the CPU that this host is reported as, if it is.

    Raises:
        TargetError: If it is unknown, or has what this host lacks.
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
    """Return what a CPU of `CPUS` has and this machine, whatever it is reported as, lacks."""
    cpu = CPUS[name]
    if cpu.arch != platform.machine():
        return [cpu.arch]
    here = detected_features().split(",")
    return [feature for feature in cpu.features.split(",") if feature not in here]


@lru_cache(maxsize=1)
def detected_features() -> str:
    """Return the features of this machine, whatever it is reported as."""
    return str(llvm.get_host_cpu_features().flatten())
