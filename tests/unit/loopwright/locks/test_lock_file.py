"""The text of lock files: its stability, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.errors import LockError
from loopwright.locks.lock_file import LockFile
from tests.unit.loopwright.locks.made import RECORD, locked

KERNELS = (locked("relu:64:float32"), locked(), locked("matmul:8,8,8:float32"))
TEXT = LockFile(KERNELS).text()


def test_a_file_that_is_read_and_written_has_the_same_bytes() -> None:
    assert LockFile.parse(TEXT.encode()).text() == TEXT
    assert LockFile.parse(TEXT.encode()).kernels == LockFile(KERNELS).kernels


def test_the_order_in_which_kernels_are_locked_does_not_matter() -> None:
    assert LockFile(reversed(KERNELS)).text() == TEXT
    names = [kernel["name"] for kernel in json.loads(TEXT)["kernels"]]
    assert names == sorted(names)


def test_a_new_decision_changes_only_lines_of_its_kernel() -> None:
    changed = LockFile(KERNELS).with_kernels([locked(factor=4)]).text().splitlines()
    before = TEXT.splitlines()
    assert len(changed) == len(before)
    different = [new for old, new in zip(before, changed, strict=True) if old != new]
    # The factor, the digests of trace, code and kernel; a line more if the factor has its own.
    assert 3 <= len(different) <= 5
    assert max(map(len, different)) < 200


def test_no_line_holds_a_whole_schedule() -> None:
    assert max(map(len, TEXT.splitlines())) < 200


def test_two_kernels_that_two_branches_added_merge() -> None:
    first, second = (LockFile([kernel]).text() for kernel in KERNELS[:2])
    merged = json.loads(first)
    merged["kernels"] += json.loads(second)["kernels"]
    assert LockFile.parse(json.dumps(merged).encode()).text() == LockFile(KERNELS[:2]).text()


def test_a_changed_time_is_refused() -> None:
    with pytest.raises(LockError, match=r"matmul \(.*\) for cpu .* was changed by hand"):
        LockFile.parse(TEXT.replace("2e-06", "1e-06", 1).encode())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[1]", "its format is None"),
        (b'{"format": 2, "kernels": []}', "its format is 2: this version reads 1"),
        (b'{"format": 1}', "kernels: Field required"),
        (b'{"format": 1, "kernels": [{"name": 3}]}', r"kernels.0.name"),
        (b"[" * 100_000, "no JSON"),
        (TEXT.replace("{", "<<<<<<< ours\n{", 1).encode(), "unfinished merge"),
    ],
)
def test_what_is_no_lock_file_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(LockError, match=reason):
        LockFile.parse(content)


@given(st.integers(0, len(TEXT) - 1), st.sampled_from('0a"{}[],: '))
def test_a_changed_character_is_refused_or_has_no_meaning(position: int, char: str) -> None:
    changed = TEXT[:position] + char + TEXT[position + 1 :]
    try:
        kernels = LockFile.parse(changed.encode()).kernels
    except LockError:
        return
    assert LockFile(kernels).text() == TEXT


def test_a_missing_file_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(LockError, match=r"no lock file .*none.lock: `loopwright lock WORKLOAD -o"):
        LockFile.load(tmp_path / "none.lock")


def test_a_folder_is_no_lock_file(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="cannot be read: Is a directory"):
        LockFile.load(tmp_path)


def test_a_record_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    LockFile([locked(record=None)]).save(path)
    assert LockFile.load(path).kernels[0].record is None
    assert LockFile([locked()]).kernels[0].record == RECORD
