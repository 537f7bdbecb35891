"""`loopwright runner`: the program with which a device without Python runs kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compiler.remote.build_runner import SOURCES, build_runner
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.options import TargetOption
from loopwright.cli.shared.output import console, size


def runner(
    target: TargetOption = "cpu",
    output: Annotated[Path, typer.Option("--output", "-o", help="Program to write.")] = Path(
        "loopwright-runner"
    ),
) -> None:
    """Build loopwright-runner for a device, from its sources in C.

    Copy the program to the device, and connect by lw.rpc.connect(["ssh", "board",
    "./loopwright-runner"]). It is static, and needs a C compiler for the CPU here: for
    cortex-a72, aarch64-linux-gnu-gcc.
    """
    cpu = Target(target)
    if not isinstance(cpu, CpuTarget):
        raise InputError(f"a runner is for a CPU, not for {cpu.name}")
    if not output.absolute().parent.is_dir() or output.is_dir():
        raise InputError(f"{output} cannot be written: it is a folder, or its folder is missing")
    build_runner(cpu.arch, output)
    console.print(
        f"{output}, {size(output.stat().st_size)}, for {cpu.arch}; its sources are in {SOURCES}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
