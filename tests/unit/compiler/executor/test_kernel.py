"""Kernels that are loaded without a compiler."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler import ops
from compiler.backends.module import Module
from compiler.driver import compile_kernel
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArgumentError, ArtifactError, PackageError
from compiler.executor.kernel import LoadedKernel, load_kernel
from compiler.executor.loading import load
from compiler.executor.machine import cpu_flags
from compiler.schedule.schedule import Schedule

RUN = """
import json, os, sys
import numpy as np
import loopwright as lw
kernel = lw.load_kernel(sys.argv[1])
a, b = (np.load(f"{name}.npy") for name in "ab")
c = np.empty((64, 48), "float32")
kernel(a, b, c)
threads = len(os.listdir("/proc/self/task"))
heavy = {"llvmlite", "compiler.ir", "compiler.backends", "compiler.target", "pydantic"}
print(json.dumps([float(abs(c - a @ b).max()), threads, sorted(heavy & set(sys.modules))]))
"""


def parallel_matmul() -> Artifact:
    schedule = Schedule(ops.matmul(64, 48, 32))
    schedule.parallel(schedule.get_loops(schedule.get_block("C"))[0])
    return compile_kernel(schedule, "cpu -num-cores=2")


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_new_process_loads_a_kernel_without_the_compiler(
    num_threads: int, tmp_path: Path
) -> None:
    artifact = parallel_matmul()
    if num_threads == 1:
        artifact = compile_kernel(ops.matmul(64, 48, 32), "cpu -num-cores=1")
    LoadedKernel(artifact)  # this process can run it, so the new one can
    artifact.save(tmp_path / "matmul.lwk")
    rng = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", rng.random((64, 32), "float32"))
    np.save(tmp_path / "b.npy", rng.random((32, 48), "float32"))
    command = [sys.executable, "-c", RUN, "matmul.lwk"]
    environment = {"PYTHONPATH": str(Path(lw.__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    error, threads, heavy = json.loads(ran.stdout)
    assert error < 1e-4
    assert threads <= num_threads  # two only if two cores are available
    assert heavy == []


def test_a_file_has_its_pool_of_threads_and_one_of_an_older_version_needs_the_compiler() -> None:
    artifact = parallel_matmul()
    assert Artifact.from_bytes(artifact.to_bytes()).pool == artifact.pool != b""
    older = Artifact.from_bytes(replace(artifact, pool=b"").to_bytes())
    with pytest.raises(ArtifactError, match=r"build it again, or load it by Module\.load"):
        LoadedKernel(older)
    a, b = np.ones((64, 32), "float32"), np.ones((32, 48), "float32")
    c = np.empty((64, 48), "float32")
    Module(older)(a, b, c)
    assert (c == 32).all()


def test_bfloat16_arrays_fit_if_their_library_is_imported_later_or_not_at_all() -> None:
    kernel = LoadedKernel(compile_kernel(ops.relu(64, dtype="bfloat16"), "cpu -num-cores=1"))
    for check in kernel._checks:
        check.dtype = np.dtype("uint16")  # as a process has it that lacks `ml_dtypes` when it loads
    bits = np.array([0x3F80, 0xBF80] * 32, "uint16")  # 1 and -1
    for dtype in ("uint16", "bfloat16"):
        result = np.full(64, 7, "uint16").view(dtype)
        kernel(bits.view(dtype), result)
        assert (result.view("uint16") == np.array([0x3F80, 0] * 32)).all()


def test_constants_are_packed_when_a_kernel_is_loaded(tmp_path: Path) -> None:
    func = ops.dense(4, 16, 8, constant="W")
    compile_kernel(func, "cpu -num-cores=1").save(tmp_path / "dense.lwk")
    rng = np.random.default_rng(0)
    x, w = rng.random((4, 8), "float32"), rng.random((16, 8), "float32")
    y = np.empty((4, 16), "float32")
    kernel = load_kernel(tmp_path / "dense.lwk", {"W": w})
    kernel(x, y)
    np.testing.assert_allclose(y, x @ w.T, rtol=1e-5)
    with pytest.raises(ArgumentError, match="const_params lacks W"):
        load_kernel(tmp_path / "dense.lwk")


def test_a_kernel_for_another_machine_is_refused() -> None:
    here = compile_kernel(ops.relu(8), "cpu -num-cores=1")
    other = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    with pytest.raises(ArtifactError, match=f"built for {other}"):
        LoadedKernel(replace(here, triple=f"{other}-unknown-linux-gnu"))
    flag = next(f for f in ("amx-fp16", "sve2", "xop") if f.replace("-", "_") not in cpu_flags())
    with pytest.raises(ArtifactError, match="built for a CPU with"):
        LoadedKernel(replace(here, features=f"{here.features},+{flag}"))
    with pytest.raises(ArtifactError, match=r"only Module\.load"):
        LoadedKernel(replace(here, backend="cuda"))


def test_code_that_is_no_object_is_an_error() -> None:
    artifact = compile_kernel(ops.relu(8), "cpu -num-cores=1")
    for code in (b"", artifact.code[:200], artifact.code.replace(b"lw_kernel", b"lw_kernal")):
        with pytest.raises(ArtifactError, match="can't be loaded"):
            LoadedKernel(replace(artifact, code=code))


def test_a_kernel_is_no_model(tmp_path: Path) -> None:
    compile_kernel(ops.relu(8), "cpu -num-cores=1").save(tmp_path / "relu.lwk")
    with pytest.raises(PackageError, match="load_kernel"):
        load(tmp_path / "relu.lwk")
