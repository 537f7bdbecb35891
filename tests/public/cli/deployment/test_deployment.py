"""Commands and options for deployments: first steps, secrets in files, files for health checks."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from service.store.database import migrate
from tests.public.cli.commands import loopwright, run


def test_migrate_creates_the_tables_of_the_database_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = tmp_path / "loopwright.db"
    monkeypatch.setenv("LOOPWRIGHT_DB", f"sqlite:///{database}")
    for _ in range(2):  # a second run changes nothing
        assert run("migrate").exit_code == 0
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    assert rows == [(migrate.head(),)]


def test_a_certificate_is_created_once(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    assert run("certificate", str(folder)).exit_code == 0
    key = (folder / "cluster.key").read_bytes()
    assert (folder / "cluster.key").stat().st_mode & 0o777 == 0o600
    assert run("certificate", str(folder)).exit_code == 0
    assert (folder / "cluster.key").read_bytes() == key


def test_a_certificate_whose_folder_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = run("certificate", str(tmp_path / "file" / "cluster"))
    assert ran.exit_code == 2
    assert "cannot write to" in ran.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("", "has no token"),
        ("two words\n", "has no token"),
        ("töken\n", "not ASCII"),
    ],
)
def test_a_token_file_without_a_token_is_an_error(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    ran = run("api", "--token-file", str(file), "--db", f"sqlite:///{tmp_path}/loopwright.db")
    assert ran.exit_code == 2
    assert reason in ran.stderr
    assert not (tmp_path / "loopwright.db").exists()


def test_a_token_and_a_token_file_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("lw_one\n")
    ran = run("serve", "--token", "lw_two", "--token-file", str(tmp_path / "token"))
    assert ran.exit_code == 2
    assert "only one of them" in ran.stderr


def test_a_ready_file_that_cannot_be_created_is_an_error(tmp_path: Path) -> None:
    ran = loopwright("scheduler", "--ready-file", str(tmp_path / "missing" / "ready"))
    assert ran.returncode == 2
    assert "its folder is missing" in " ".join(ran.stderr.split())
