"""`lw.lock`: what is written, replaced, and built again."""

from __future__ import annotations

from pathlib import Path

import pytest

import loopwright as lw
from loopwright.errors import LockError
from loopwright.locks.lock import rebuild_lock
from loopwright.locks.lock_file import LockFile
from tests.targets import here
from tests.unit.loopwright.locks.made import OPERATOR, locked


@pytest.fixture(scope="module")
def result() -> lw.TuneResult:
    return lw.tune(OPERATOR, target=here(), max_trials=4, progress=False)


def test_a_result_is_locked_with_its_schedule_and_its_time(
    result: lw.TuneResult, tmp_path: Path
) -> None:
    path = tmp_path / "a.lock"
    (added,) = lw.lock(path, result)
    assert LockFile.load(path).kernels == (added,)
    assert added.schedule == result.best.trace
    assert added.record is not None
    assert added.record.run_secs == pytest.approx(result.best.run_secs, rel=1e-5)
    assert added.record.kind is result.best.kind
    assert added.workload_key == lw.structural_hash(result.func)


def test_a_locked_result_replaces_that_of_its_task_and_keeps_others(
    result: lw.TuneResult, tmp_path: Path
) -> None:
    path = tmp_path / "a.lock"
    other = locked("relu:64:float32")
    LockFile([locked(), other]).save(path)
    (added,) = lw.lock(path, result)
    assert LockFile.load(path).kernels == (added, other)


def test_the_same_result_gives_the_same_bytes(result: lw.TuneResult, tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    lw.lock(path, result)
    content = path.read_bytes()
    lw.lock(path, result)
    assert path.read_bytes() == content


def test_a_damaged_file_is_not_replaced(result: lw.TuneResult, tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(LockError, match="cannot be used: it is no JSON"):
        lw.lock(path, result)
    assert path.read_text(encoding="utf-8") == "{"


def test_a_rebuilt_file_has_this_compiler_and_the_same_schedules(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    entry, other = locked(), locked("relu:64:float32")
    old = entry.model_copy(update={"toolchain": "loopwright-codegen 7", "code_sha256": "0" * 64})
    LockFile([old, other]).save(path)
    (line,) = rebuild_lock(path)
    assert line.endswith(f"loopwright-codegen 7 -> {entry.toolchain}")
    assert LockFile.load(path).kernels == (entry, other)
    assert rebuild_lock(path) == []


def test_a_script_of_another_function_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    other = locked("relu:64:float32")
    LockFile([locked().model_copy(update={"script": other.script})]).save(path)
    with pytest.raises(LockError, match="its script is of another function than its key"):
        rebuild_lock(path)
