"""`loopwright verify`: exit codes and JSON. Records are far from any time that is possible."""

from __future__ import annotations

import json
from pathlib import Path

from loopwright.locks.lock_file import LockFile
from tests.public.cli.commands import run
from tests.unit.loopwright.locks.made import RECORD, locked


def write(path: Path, secs: float) -> None:
    """Write a lock file of one kernel, which takes microseconds, with a recorded time."""
    times = {"run_secs": secs, "interval": (secs, secs), "default_secs": None}
    LockFile([locked(record=RECORD.model_copy(update=times))]).save(path)


def test_a_kernel_that_is_a_thousand_times_faster_passes(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    write(path, 1.0)
    ran = run("verify", "--against", str(path))
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith("ok ")
    assert "recorded 1 s by builder/7" in ran.stdout


def test_a_kernel_that_is_a_thousand_times_slower_is_exit_code_1(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    write(path, 1e-9)
    ran = run("verify", "--against", str(path), "--json")
    assert ran.exit_code == 1
    answer = json.loads(ran.stdout)
    assert (answer["passed"], answer["bound"]) == (False, 1.25)
    (kernel,) = answer["kernels"]
    assert kernel["verdict"] == "slower"
    assert kernel["slowdown_interval"][0] > 1.25
    assert kernel["run_secs"] > 1e-9


def test_a_missing_file_is_exit_code_2(tmp_path: Path) -> None:
    ran = run("verify", "--against", str(tmp_path / "none.lock"))
    assert ran.exit_code == 2
    assert "there is no lock file" in ran.stderr
