"""Models in programs in C: linked by a compiler of C alone, on this host and for AArch64."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from compiler.ir.core.dtypes import DType
from compiler.package.build_package import build_package, save_folder
from compiler.target.cpu import CpuTarget
from tests.cross.tools import cross_tools
from tests.model_plans import Value, classifier, parallel_plan, remainder_plan
from tests.targets import here

EXAMPLE = Path(__file__).parents[4] / "examples" / "c" / "main.c"
IMAGE = np.random.default_rng(0).random((1, 784), "float32")
# More than the goal of 100 KB would be a part of the C library or of the compiler.
LIMIT_BYTES = 100_000
STRICT = ("-O1", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror")

PARALLEL = r"""
#include <stdio.h>
#include <stdlib.h>
#include "model.h"
int main(void)
{
    static float a[512 * 512], b[512 * 512], y[512 * 512];
    for (int i = 0; i < 512 * 512; i++) { a[i] = i; b[i] = 2 * i; }
    const void *inputs[] = {a, b};
    void *outputs[] = {y};
    void *workspace = aligned_alloc(64, PARALLEL_WORKSPACE_BYTES + 64);
    for (int threads = 1; threads <= PARALLEL_MAX_THREADS; threads++)
        parallel_run(inputs, outputs, workspace, workspace, workspace, threads, lw_launch);
    for (int i = 0; i < 512 * 512; i++)
        if (y[i] != 3.0f * i) return 1;
    return 0;
}
"""

REMAINDERS = r"""
#include <stdio.h>
#include "model.h"
int main(void)
{
    static ELEMENT a[5] = {7, 9, 0, 12, 100}, b[5] = {4, 3, 5, 0, 7}, y[5];
    static const ELEMENT expected[5] = {3, 0, 0, 0, 2};
    const void *inputs[] = {a, b};
    void *outputs[] = {y};
    _Alignas(64) static char memory[REMAINDER_WORKSPACE_BYTES + 64];
    remainder_run(inputs, outputs, memory, memory, memory, 1, NULL);
    for (int i = 0; i < 5; i++)
        if (y[i] != expected[i]) return 1;
    return 0;
}
"""


def _tool(name: str) -> str:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


def _run(*command: str | Path, given: bytes = b"") -> str:
    done = subprocess.run(command, input=given, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout.decode()


def _check_example(folder: Path, result: Value, program: str, *runner: str) -> None:
    printed = _run(*runner, folder / program, folder / "weights.bin", given=IMAGE.tobytes())
    probabilities = np.array(list(map(float, printed.split())))
    expected = result.reference({"image": IMAGE})[0]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4, atol=1e-6)


def test_the_example_runs_a_model_and_is_small(tmp_path: Path) -> None:
    compiler = _tool("cc")
    plan, result = classifier()
    save_folder(build_package(plan), tmp_path / "mnist")
    folder = tmp_path / "mnist"
    _run(
        compiler, *STRICT, "-I", folder, EXAMPLE, folder / "model.o", "-lm", "-o", folder / "a.out"
    )
    _check_example(folder, result, "a.out")
    size = (folder / "a.out").stat().st_size + (folder / "weights.bin").stat().st_size
    assert size < LIMIT_BYTES


@pytest.mark.parametrize("cpu", ["cortex-a72", "cortex-a9", "sifive-x280"])
def test_the_example_runs_on_other_cpus(cpu: str, tmp_path: Path) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    tools = cross_tools(target)
    plan, result = classifier(target)
    folder = tmp_path / "mnist"
    save_folder(build_package(plan), folder)
    options = (*STRICT, "-static", "-I", folder)
    _run(tools.compiler, *options, EXAMPLE, folder / "model.o", "-lm", "-o", folder / "a.out")
    _check_example(folder, result, "a.out", *tools.runner)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_a_program_for_a_cpu_without_divisions_gets_those_of_libgcc(
    dtype: DType, tmp_path: Path
) -> None:
    target = CpuTarget("cpu -mcpu=cortex-a9 -num-cores=1")
    tools = cross_tools(target)
    save_folder(build_package(remainder_plan(target, dtype)), tmp_path / "rem")
    folder = tmp_path / "rem"
    (folder / "main.c").write_text(REMAINDERS)
    options = (f"-DELEMENT={dtype}_t", "-O1", "-std=c11", "-static", "-I", folder)
    _run(tools.compiler, *options, folder / "main.c", folder / "model.o", "-o", folder / "a.out")
    _run(*tools.runner, folder / "a.out")


def test_a_program_in_c_has_the_pool_of_the_package(tmp_path: Path) -> None:
    compiler = _tool("cc")
    folder = tmp_path / "parallel"
    save_folder(build_package(parallel_plan(2)[0]), folder)
    (folder / "main.c").write_text(PARALLEL)
    objects = [folder / name for name in ("main.c", "model.o", "pool.o")]
    _run(compiler, *STRICT, *objects, "-lm", "-lpthread", "-o", folder / "a.out")
    _run(folder / "a.out")


def test_the_header_is_one_of_cpp_too(tmp_path: Path) -> None:
    compiler = _tool("c++")
    save_folder(build_package(classifier(here())[0]), tmp_path / "mnist")
    (tmp_path / "main.cc").write_text('#include "model.h"\n#include "model.h"\n')
    _run(
        compiler,
        "-Wall",
        "-Werror",
        "-fsyntax-only",
        "-I",
        tmp_path / "mnist",
        tmp_path / "main.cc",
    )
