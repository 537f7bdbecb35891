"""Kernels for CPUs of other architectures, run in QEMU's user mode.

A kernel's object is linked with a small C program, which reads the parameters from its standard
input, calls the kernel, and writes them to its output. Bytes beyond the end of each parameter must
stay as they were.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.driver import emit
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from tests.cross_tools import cross_tools

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { MARGIN = 4096 };
void lw_kernel(void **words);
static void run_all(void (*task)(long, long, long, void *), long n, void *context, long threads)
{
    task(0, n, 0, context);
}
static char *allocate(long size)
{
    long room = (size + 4095) / 4096 * 4096 + MARGIN;
    char *memory = aligned_alloc(4096, room);
    return memset(memory, 0x7f, room);
}
int main(int argc, char **argv)
{
    int params = argc - 2;
    void **words = calloc(params + 3, sizeof *words);
    for (int i = 0; i < params; i++) {
        words[i] = allocate(atol(argv[i + 2]));
        if (fread(words[i], 1, atol(argv[i + 2]), stdin) != atol(argv[i + 2])) return 2;
    }
    words[params] = allocate(atol(argv[1]));
    words[params + 1] = (void *)1L;
    words[params + 2] = run_all;
    lw_kernel(words);
    for (int i = 0; i < params; i++) {
        long size = atol(argv[i + 2]);
        fwrite(words[i], 1, size, stdout);
        for (int k = 0; k < MARGIN; k++)
            if (((char *)words[i])[size + k] != 0x7f) return 3;
    }
    return 0;
}
"""
# What QEMU calls a CPU with all extensions, and one with vectors of a length.
_MODELS = {"aarch64": "max", "riscv64": "rv64,v=true,vlen={bits}"}


class EmulatedCpu:
    """Runs kernels for a CPU.

    Args:
        target: The CPU.
        folder: An empty folder.
    """

    def __init__(self, target: CpuTarget, folder: Path) -> None:
        self._target, self._folder = target, folder
        arch = target.arch
        self._compiler, emulator = cross_tools(arch, folder)
        model = _MODELS[arch].format(bits=target.vector_bits)
        self._emulator = (emulator, "-cpu", model)
        (folder / "driver.c").write_text(DRIVER)
        self._run(self._compiler, "-O1", "-c", folder / "driver.c", "-o", folder / "driver.o")

    def call(self, func: PrimFunc, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Return the parameters of a program after a run on arrays."""
        source = emit(func, self._target)
        folder, program = self._folder, self._folder / "program"
        (folder / "kernel.o").write_bytes(compile_object(source.text, self._target))
        objects = (folder / "driver.o", folder / "kernel.o")
        self._run(self._compiler, "-static", *objects, "-lm", "-o", program)
        sizes = [str(array.nbytes) for array in arrays.values()]
        given = b"".join(array.tobytes() for array in arrays.values())
        output = self._run(
            *self._emulator, program, str(source.workspace_bytes), *sizes, given=given
        )
        results, start = {}, 0
        for name, array in arrays.items():
            flat = np.frombuffer(output, array.dtype, array.size, start)
            results[name] = flat.reshape(array.shape)
            start += array.nbytes
        return results

    @staticmethod
    def _run(*command: str | Path, given: bytes = b"") -> bytes:
        done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr.decode(errors="replace"))
        return done.stdout
