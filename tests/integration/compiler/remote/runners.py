"""Programs of devices: `loopwright-runner` for this host and for others, built once a process."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from compiler.remote.build_runner import build_runner
from compiler.target.cpu import CpuTarget
from tests.cross.operators import target_of
from tests.cross.tools import cross_tools

_FOLDER = tempfile.TemporaryDirectory(prefix="loopwright-runners-")  # as long as the process


@cache
def _program(arch: str) -> str:
    path = Path(_FOLDER.name, arch)
    build_runner(arch, path)
    return str(path)


def runner_for(cpu: str) -> tuple[list[str], CpuTarget]:
    """Return the command of a runner for a CPU, and its target; skip the test without tools."""
    tools = cross_tools(target_of(cpu))
    target = target_of(cpu, tools)
    return [*tools.runner, _program(target.arch)], target


def runner_here() -> list[str]:
    """Return the command of a runner for this host; skip the test without a C compiler."""
    return runner_for("x86-64")[0]
