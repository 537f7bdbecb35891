"""The C compilers and the emulators of other architectures, where a host has them."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from compiler.target.cpu import CpuTarget
from compiler.target.host import detected_features

# By Linux's name of an architecture: GCC's name of its compiler, QEMU's name of it, and the model
# with all extensions that QEMU knows.
_GCC = {
    "x86_64": "x86_64-linux-gnu-gcc",
    "aarch64": "aarch64-linux-gnu-gcc",
    "armv7l": "arm-linux-gnueabihf-gcc",
    "riscv64": "riscv64-linux-gnu-gcc",
}
_QEMU = {"x86_64": "x86_64", "aarch64": "aarch64", "armv7l": "arm", "riscv64": "riscv64"}
# What QEMU's model of x86-64 does not have.
_NOT_EMULATED = ("+avx512f", "+amx-tile", "+avxvnni")


class MissingToolError(Exception):
    """This host cannot build or run programs for a CPU."""


@dataclass(frozen=True, slots=True)
class CrossTools:
    """How to build and run programs for a CPU.

    Attributes:
        compiler: The compiler of C.
        runner: The command before a program; empty if the host runs it itself.
        missing_feature: A feature of the CPU that the emulator lacks; empty if it has all.
    """

    compiler: str
    runner: tuple[str, ...]
    missing_feature: str = ""

    @property
    def is_emulated(self) -> bool:
        """Return whether programs run in an emulator."""
        return bool(self.runner)


def find_tools(target: CpuTarget) -> CrossTools:
    """Return the tools for a target.

    Raises:
        MissingToolError: If one is missing, or neither the host nor the emulator runs its code.
    """
    arch = target.arch
    if arch == platform.machine():
        needed = [f for f in target.features.split(",") if f.startswith("+")]
        if set(needed) <= set(detected_features().split(",")):
            if not _runs(_found("cc")):
                raise MissingToolError("cc is installed without a static C library")
            return CrossTools("cc", ())
    compiler = _found("cc" if arch == platform.machine() else _GCC[arch])
    emulator = _found(f"qemu-{_QEMU[arch]}")
    models = _models(target)
    usable = [model for model in models if _runs(compiler, emulator, "-cpu", model)]
    if not usable:
        raise MissingToolError(f"{compiler} is not installed with a C library for {arch}")
    lacking = [feature for feature in _NOT_EMULATED if feature in target.features.split(",")]
    if arch == "x86_64" and lacking:
        raise MissingToolError(f"this host has no {lacking[0][1:]}, and QEMU does not emulate it")
    missing = "" if usable[0] == models[0] else "zvfh"
    return CrossTools(compiler, (emulator, "-cpu", usable[0]), missing)


def _models(target: CpuTarget) -> Sequence[str]:
    """Return QEMU's models of a CPU, the best first: those before version 8.0 lack some vectors."""
    if target.arch != "riscv64":
        return ("max",)
    model = f"rv64,v=true,vlen={target.vector_bits}"
    return (f"{model},zfh=true,zvfh=true", f"{model},Zfh=true")


def cross_tools(target: CpuTarget) -> CrossTools:
    """Return the tools for a target; skip the test without them."""
    try:
        return find_tools(target)
    except MissingToolError as error:
        pytest.skip(str(error))


def run(
    *command: str | Path, folder: Path, given: bytes = b"", timeout_secs: float = 120.0
) -> bytes:
    """Run a program that must succeed, and return its output."""
    done = subprocess.run(
        command, cwd=folder, input=given, capture_output=True, timeout=timeout_secs, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stderr.decode(errors="replace")[-2000:])
    return done.stdout


def strict(options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the options of a C compiler that refuses what is doubtful."""
    return ("-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *options)


def _found(tool: str) -> str:
    if shutil.which(tool) is None:
        raise MissingToolError(f"{tool} is not installed")
    return tool


@cache
def _runs(compiler: str, *runner: str) -> bool:
    """Return whether a program can be built and run: a compiler may lack its C library."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "probe.c"), Path(folder, "probe")
        source.write_text("#include <stdio.h>\nint main(void) { return 0; }\n")
        for command in (
            (compiler, "-static", str(source), "-lm", "-o", str(program)),
            (*runner, str(program)),
        ):
            done = subprocess.run(command, capture_output=True, timeout=60, check=False)
            if done.returncode:
                return False
    return True
