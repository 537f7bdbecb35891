"""Loaded kernels: where they run, and that they are unloaded."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import psutil
import pytest

from compiler import ops
from compiler.backends.module import Module
from compiler.driver import build, compile_kernel
from compiler.executor.error import ArgumentError, ArtifactError


@pytest.fixture(scope="module")
def matmul() -> Module:
    return build(ops.matmul(4, 6, 8), "cpu -num-cores=1")


def test_a_saved_kernel_runs_in_another_process(matmul: Module, tmp_path: Path) -> None:
    path = tmp_path / "matmul.lwk"
    matmul.save(path)
    program = (
        "import sys, numpy as np\n"
        "from compiler.backends.module import Module\n"
        "c = np.empty((4, 6), 'float32')\n"
        "Module.load(sys.argv[1])(np.ones((4, 8), 'float32'), np.ones((8, 6), 'float32'), c)\n"
        "assert (c == 8).all(), c\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, timeout=60)


def test_code_for_features_that_the_host_lacks_is_refused(matmul: Module) -> None:
    foreign = replace(matmul.artifact, features="+avx1024")
    with pytest.raises(ArtifactError, match=r"has \+avx1024"):
        Module(foreign)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "sapphirerapids"])
def test_code_for_another_cpu_says_what_it_needs(cpu: str) -> None:
    """The host is taken for one that has the oldest features only."""
    artifact = compile_kernel(ops.matmul(4, 6, 8), f"cpu -mcpu={cpu}")
    with (
        mock.patch("compiler.backends.cpu.runtime.module.host_features", return_value="+sse2,+avx"),
        pytest.raises(ArtifactError, match=r"\+avx2.*\+fma"),
    ):
        Module(artifact)


def test_code_for_another_architecture_is_refused() -> None:
    artifact = compile_kernel(ops.matmul(4, 6, 8), "cpu -mcpu=neoverse-n1")
    with pytest.raises(ArtifactError, match="aarch64"):
        Module(artifact)


def test_a_closed_module_says_so() -> None:
    module = build(ops.relu(8), "cpu -num-cores=1")
    module.close()
    module.close()
    with pytest.raises(ArgumentError, match="was closed"):
        module(np.ones(8, "float32"), np.ones(8, "float32"))


def test_one_module_may_be_called_from_several_threads() -> None:
    """The intermediate lives in the workspace: shared, threads would mix their results."""
    module = build(ops.mm_relu(96, 96, 96), "cpu -num-cores=1")
    wrong: list[int] = []

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        a, b = rng.random((96, 96), "float32"), rng.random((96, 96), "float32")
        c = np.empty((96, 96), "float32")
        for _ in range(10):
            module(a, b, c)
            if not np.allclose(c, a @ b, rtol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_modules_are_unloaded_and_leak_nothing() -> None:
    """Hundreds of kernels come and go: the process does not grow by more than a few MB."""
    artifact = compile_kernel(ops.matmul(32, 32, 32))
    process = psutil.Process()

    def churn(times: int) -> int:
        for _ in range(times):
            Module(artifact).close()
        return int(process.memory_info().rss)

    before = churn(100)
    assert churn(400) - before < 8 << 20
