"""Targets of tests: this host for code that runs, a named CPU for code that is inspected.

Generated code, sketches, filters and numbers of candidates differ between CPUs. The named CPUs are
levels of the x86-64 psABI. LLVM detects no host by these names, so their facts never depend on this
host.
"""

from __future__ import annotations

import pytest

from compiler.target.cpu import CpuTarget
from compiler.target.host import host_features


def here(num_cores: int = 1) -> CpuTarget:
    """Return the target of this host, for code that runs."""
    return CpuTarget(f"cpu -num-cores={num_cores}")


def without_tiles() -> CpuTarget:
    """Return one core of this host without its tile registers (AMX), if it has some."""
    has_tiles = "+amx-tile" in host_features().split(",")
    return CpuTarget(f"cpu -num-cores=1{' -mattr=-amx-tile' if has_tiles else ''}")


def level(number: int, num_cores: int = 1) -> CpuTarget:
    """Return a level of the psABI: 3 has 16 registers of 8 floats, 4 has 32 of 16."""
    return CpuTarget(f"cpu -mcpu=x86-64-v{number} -num-cores={num_cores}")


def runs_here(number: int) -> pytest.MarkDecorator:
    """Return a mark that skips a test if this host, as reported, lacks a level."""
    needed = set(level(number).features.split(","))
    missing = needed - set(host_features().split(","))
    return pytest.mark.skipif(bool(missing), reason=f"this host has no x86-64-v{number}")
