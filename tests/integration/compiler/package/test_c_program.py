"""Models in programs in C: linked by a compiler of C alone, on this host and for AArch64."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from compiler.package.build_package import build_package, save_folder
from compiler.target.cpu import CpuTarget
from tests.cross.tools import cross_tools
from tests.model_plans import Value, classifier, parallel_plan
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
