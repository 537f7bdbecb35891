"""Design spaces that are read from files are those that rules make."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler import ops
from compiler.target.target import Target
from tuner.space import generate, stored_spaces
from tuner.space.generate import design_space
from tuner.task import Task

TASK = Task(ops.matmul(32, 24, 16), Target("cpu -mcpu=znver3 -num-cores=1"))
OTHERS = [
    Task(ops.matmul(32, 24, 8), TASK.target),
    Task(TASK.func, Target("cpu -mcpu=znver4 -num-cores=1")),
    Task(TASK.func, Target("cpu -mcpu=znver3 -num-cores=2")),
]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    forget()
    stored_spaces.keep_in(tmp_path)
    yield tmp_path / "spaces"
    stored_spaces._directories.clear()
    forget()


def forget() -> None:
    """Forget the spaces in memory."""
    generate._spaces.clear()
    generate._used.clear()


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_space_is_made_once_and_then_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = design_space(TASK)
    assert len(files(folder)) == 1
    forget()
    monkeypatch.setattr(generate, "_design_space", None)  # no rule runs
    read = design_space(TASK)
    assert read is not made
    assert read.sketches == made.sketches
    assert [read.count(n) for n in range(len(read.sketches))] == [
        made.count(n) for n in range(len(made.sketches))
    ]


def test_another_program_target_or_choice_of_rules_has_another_file(folder: Path) -> None:
    for task in (TASK, *OTHERS):
        design_space(task)
    design_space(TASK, ["multi_level_tiling"])
    assert len(files(folder)) == len(OTHERS) + 2


def test_other_code_has_other_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design_space(TASK)
    forget()
    monkeypatch.setattr(stored_spaces, "_digest_of_code", lambda: "of another version")
    design_space(TASK)
    assert len(files(folder)) == 2


def test_a_damaged_file_is_made_again(folder: Path) -> None:
    sketches = design_space(TASK).sketches
    [path] = files(folder)
    whole = path.read_bytes()
    digest, content = whole.split(b"\n")
    other_number = digest + b"\n" + content.replace(b"16", b"17", 1)
    assert other_number != whole
    for content in (b"", b"{", b"\xff\n[]", whole[:-1], other_number):
        path.write_bytes(content)
        forget()
        assert design_space(TASK).sketches == sketches
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    forget()
    (tmp_path / "spaces").write_text("not a folder")
    stored_spaces.keep_in(tmp_path)
    assert design_space(TASK).sketches
    stored_spaces._directories.clear()
    forget()


def test_the_oldest_files_are_deleted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_spaces, "_MAX_FILES", 2)
    for age, task in enumerate([TASK, *OTHERS]):
        design_space(task)
        newest = max(files(folder), key=lambda path: path.stat().st_mtime)
        os.utime(newest, (1000 + age, 1000 + age))
    assert [path.stat().st_mtime for path in files(folder)].count(1000) == 0
    assert len(files(folder)) <= 3
