from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.common.errors import ServeError
from service.store.database import migrate
from service.store.database.database import Database, open_database
from tests.service_fixtures import add_job, write_a_newer_one, write_text


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def test_opening_creates_the_file_in_write_ahead_mode(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    open_database(url_of(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT * FROM alembic_version").fetchall() == [(migrate.head(),)]


def test_an_empty_file_is_as_good_as_none(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with closing(open_database(url_of(path))) as database:
        add_job(database)


def test_opening_again_keeps_what_is_there(database: Database, database_file: Path) -> None:
    job_id = add_job(database)
    database.close()
    with closing(open_database(url_of(database_file))) as again, again.read() as session:
        assert session.scalar(text("SELECT count(*) FROM jobs")) == 1
        assert session.scalar(text("SELECT id FROM jobs")) == job_id.hex


def test_many_may_create_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    barrier, problems = Barrier(6), list[Exception]()

    def open_it() -> None:
        barrier.wait()
        try:
            with closing(open_database(url_of(path))) as database:
                add_job(database)
        except Exception as error:
            problems.append(error)

    threads = [Thread(target=open_it) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM jobs").fetchone() == (6,)


def write_half_a_database(path: Path) -> None:
    with closing(open_database(url_of(path))):
        pass
    path.write_bytes(path.read_bytes()[:5000])


def write_a_stranger(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (write_text, "is not an SQLite database"),
        (write_half_a_database, "malformed"),
        (write_a_stranger, "the database of another program"),
        (
            write_a_newer_one,
            f"written by a newer version of Loopwright.*'9999'.*'{migrate.head()}'",
        ),
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_untouched(
    tmp_path: Path, write: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "file.db"
    write(path)
    before = path.read_bytes()
    with pytest.raises(ServeError, match=message):
        open_database(url_of(path))
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"missing is not a directory"):
        open_database(url_of(tmp_path / "missing" / "file.db"))


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"cannot read the database .*Is a directory"):
        open_database(url_of(tmp_path))


def test_a_path_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(ServeError, match=r"cannot create the database /proc/loopwright.db"):
        open_database("sqlite:////proc/loopwright.db")


@pytest.mark.parametrize("url", ["loopwright.db", "sqlite://", "sqlite:///:memory:", "mysql://h/d"])
def test_a_url_that_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(ServeError, match=r"expected sqlite:///PATH"):
        open_database(url)


INSERT = text(
    "INSERT INTO targets (name, label, created_at) VALUES (:name, 'l', '2026-01-01 00:00:00')"
)


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    def insert_both(session: Session) -> None:
        for _ in range(2):
            session.execute(INSERT, {"name": "t"})

    with pytest.raises(IntegrityError), database.write() as session:
        insert_both(session)
    with database.read() as session:
        assert session.scalar(text("SELECT count(*) FROM targets")) == 0


def test_writers_wait_for_each_other_also_after_reading(database: Database) -> None:
    """A deferred transaction that reads, then writes, would fail at once with "locked"."""

    def count_up() -> None:
        for _ in range(20):
            with database.write() as session:
                number = session.scalar(text("SELECT count(*) FROM targets"))
                session.execute(INSERT, {"name": f"t{number}"})

    threads = [Thread(target=count_up) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as session:
        assert session.scalar(text("SELECT count(*) FROM targets")) == 80
