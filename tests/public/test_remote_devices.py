"""Remote devices as a user has them: a server's worker, and the commands for a board."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from examples.serving import Server
from loopwright import rpc
from tests.cross.operators import target_of
from tests.cross.tools import cross_tools


def test_a_kernel_runs_on_a_worker_of_a_server(server: Server, tmp_path: Path) -> None:
    kernel = lw.compile_kernel(lw.ops.matmul(32, 24, 16), "cpu -num-cores=1")
    kernel.save(tmp_path / "matmul.o")
    a, b = (np.random.default_rng(0).random(shape, "float32") for shape in ((32, 16), (16, 24)))
    with lw.rpc.connect(server.url) as remote:
        remote.upload(tmp_path / "matmul.o")
        product = remote.load_module("matmul.o")
        result = remote.empty((32, 24))
        arrays = (remote.array(a), remote.array(b), result)
        timing = product.time_evaluator(repeat=3)(*arrays)
        assert len(timing.secs) == 3
        np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-5)
    with pytest.raises(rpc.RemoteGoneError, match="it was closed"):
        result.numpy()


def test_a_server_without_such_a_worker_says_so(server: Server) -> None:
    with pytest.raises(lw.NotFoundError, match="no worker serves cpu/cortex-a72"):
        rpc.connect(server.url, target="cpu -mcpu=cortex-a72")


def test_a_board_gets_its_runner_by_a_command(tmp_path: Path) -> None:
    target = target_of("cortex-a53")
    tools = cross_tools(target)
    command = [sys.executable, "-m", "loopwright", "runner", "--target", target.name]
    program = tmp_path / "loopwright-runner"
    done = subprocess.run(
        [*command, "-o", str(program)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "aarch64" in done.stdout
    with rpc.connect([*tools.runner, str(program)]) as remote:
        relu = remote.load_module(lw.compile_kernel(lw.ops.relu(8), target))
        x, y = remote.array(np.arange(-4, 4, dtype="float32")), remote.empty((8,))
        relu(x, y)
        np.testing.assert_array_equal(y.numpy(), np.maximum(np.arange(-4, 4), 0))


def test_the_program_of_the_page_on_cross_compiling_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cross_compiling.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    assert {path.name for path in tmp_path.iterdir()} == {"matmul.lwk", "matmul.o", "matmul.h"}
    header = (tmp_path / "matmul.h").read_text(encoding="utf-8")
    for line in ("#define MATMUL_WORKSPACE_BYTES 0", "static inline void matmul_run("):
        assert line in header
        assert line in page
