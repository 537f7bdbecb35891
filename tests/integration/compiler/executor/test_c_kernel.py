"""Programs in C that call kernels: with constants, with threads, and of other CPUs."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.driver import compile_kernel
from compiler.executor.artifact import Artifact
from compiler.executor.kernel import load_kernel
from compiler.schedule.schedule import Schedule
from compiler.target.cpu import CpuTarget
from tests.cross.tools import CrossTools, cross_tools, run, strict
from tests.targets import here

CONSTANT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "k.h"
int main(void)
{
    static float x[4 * 64], w[48 * 64], y[4 * 48];
    if (fread(x, 1, sizeof x, stdin) != sizeof x) return 1;
    if (fread(w, 1, sizeof w, stdin) != sizeof w) return 1;
    void *copy = aligned_alloc(DENSE_ALIGNMENT, (DENSE_COPY_0_BYTES + 63) / 64 * 64);
    void *memory = aligned_alloc(DENSE_ALIGNMENT, 1 << 20);
    memset(copy, 0, DENSE_COPY_0_BYTES);
    dense_pack(w, copy, memory, 1, NULL);
    dense_run(x, y, copy, memory, 1, NULL);
    return fwrite(y, 1, sizeof y, stdout) != sizeof y;
}
"""
THREADS = r"""
#include <stdio.h>
#include <stdlib.h>
#include "k.h"
int main(void)
{
    static float a[512 * 512], b[512 * 512], y[512 * 512];
    for (int i = 0; i < 512 * 512; i++) { a[i] = i; b[i] = 2 * i; }
    void *memory = aligned_alloc(ADD_ALIGNMENT, ADD_WORKSPACE_BYTES + 64);
    for (int threads = 0; threads < 9; threads++)
        for (int k = 0; k < 20; k++)
            add_run(a, b, y, memory, threads, threads == 2 ? NULL : lw_launch);
    for (int i = 0; i < 512 * 512; i++)
        if (y[i] != 3.0f * i) return 1;
    return 0;
}
"""


def _program(text: str, kernel: Artifact, tools: CrossTools, folder: Path) -> tuple[str, ...]:
    for suffix in (".o", ".h"):
        kernel.save(folder / f"k{suffix}")
    (folder / "main.c").write_text(text)
    objects = sorted(path.name for path in folder.glob("*.o"))
    options = ("-static", "main.c", *objects, "-lm", "-lpthread", "-o", "program")
    run(tools.compiler, *strict(options), folder=folder)
    return (*tools.runner, "./program")


@pytest.mark.parametrize("cpu", ["cortex-a9", "spacemit-x60"])
def test_constants_are_packed_once(cpu: str, tmp_path: Path) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    schedule = Schedule(ops.dense(4, 48, 64, constant="W"))
    j0, _ = schedule.split(schedule.get_loops("C")[1], [None, 8])
    schedule.reorder(j0, schedule.get_loops("C")[0])
    schedule.annotate(schedule.cache_read("C", 1, "global"), "buffer_tile", [8, 1])
    kernel = compile_kernel(schedule, target)
    assert kernel.packer is not None
    command = _program(CONSTANT, kernel, cross_tools(target), tmp_path)
    x, w = (np.random.default_rng(0).random(shape, "float32") for shape in ((4, 64), (48, 64)))
    output = run(*command, folder=tmp_path, given=x.tobytes() + w.tobytes())
    result = np.frombuffer(output, "float32").reshape(4, 48)
    np.testing.assert_allclose(result, x @ w.T, rtol=1e-5)


def _parallel(target: CpuTarget) -> Artifact:
    schedule = Schedule(ops.add(512, 512))
    (block,) = schedule.get_child_blocks(schedule.get_block("root"))
    schedule.parallel(schedule.get_loops(block)[0])
    return compile_kernel(schedule, target)


@pytest.mark.parametrize("cpu", ["neoverse-n1", "cortex-a9", "spacemit-x60"])
def test_loops_run_on_the_pool_of_the_kernel(cpu: str, tmp_path: Path) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=4")
    kernel = _parallel(target)
    assert kernel.num_threads == 4
    run(*_program(THREADS, kernel, cross_tools(target), tmp_path), folder=tmp_path)


def test_a_library_is_loaded_by_c_and_by_python(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    _parallel(here(2)).save(tmp_path / "-add.so")  # the linker must not read it as an option
    a, b = np.random.default_rng(0).random((2, 512, 512), "float32")
    result, from_python = np.empty((2, 512, 512), "float32")
    library = ctypes.CDLL(str(tmp_path / "-add.so"))
    launch = ctypes.cast(library.lw_launch, ctypes.c_void_p).value or 0
    workspace = np.empty(1 << 16, "uint8")
    arrays = [array.ctypes.data for array in (a, b, result, workspace)]
    library.lw1_add((ctypes.c_uint64 * 6)(*arrays, 2, launch))
    assert (result == a + b).all()
    load_kernel(tmp_path / "-add.so")(a, b, from_python)
    assert (from_python == a + b).all()
