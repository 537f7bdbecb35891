"""`loopwright lock`: from a server to a kernel without one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import loopwright as lw
from examples.serving import Server
from tests.public.cli.commands import OPERATOR, TARGET, UNREACHABLE, run


def test_the_best_schedule_of_a_server_becomes_a_kernel_without_it(
    server: Server, job: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.lock"
    ran = run("lock", OPERATOR, "--target", TARGET, "-o", str(path), server=server)
    assert ran.exit_code == 0, ran.stderr
    assert "locked matmul (" in ran.stderr
    (locked,) = json.loads(path.read_text(encoding="utf-8"))["kernels"]
    with lw.Client(server.url) as client:
        best = client.best(OPERATOR, target=TARGET)
    assert locked["trace_key"] == best.trace.key()
    assert locked["record"]["worker"] == best.provenance["worker"]
    kernel = lw.kernel(OPERATOR, lock=path, target=TARGET)
    a, b = np.ones((16, 24), "float32"), np.ones((24, 16), "float32")
    c = np.zeros((16, 16), "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, np.full((16, 16), 24))
    rebuilt = run("lock", "--rebuild", "-o", str(path), "--url", UNREACHABLE)
    assert rebuilt.exit_code == 0, rebuilt.stderr
    assert "is up to date" in rebuilt.stderr


def test_what_was_not_tuned_is_not_locked(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    ran = run("lock", "relu:54321", "-o", str(path), server=server)
    assert ran.exit_code == 1
    assert not path.exists()


def test_workloads_and_rebuild_exclude_each_other(tmp_path: Path) -> None:
    for args in ((), (OPERATOR, "--rebuild")):
        ran = run("lock", *args, "-o", str(tmp_path / "a.lock"))
        assert ran.exit_code == 2
        assert "expected workloads to lock, or --rebuild" in ran.stderr


def test_a_damaged_file_is_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.write_text("<<<<<<< HEAD", encoding="utf-8")
    ran = run("lock", "--rebuild", "-o", str(path))
    assert ran.exit_code == 2
    assert "cannot be used: it is no JSON" in ran.stderr
