"""What is of PostgreSQL alone: which databases are refused, and coordinators in many processes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from math import inf
from pathlib import Path
from typing import Self
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Float,
    MetaData,
    String,
    Table,
    Uuid,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import DBAPIError, OperationalError

from service.common.errors import ServeError
from service.common.owner import Owner
from service.jobs.jobs import submit_job
from service.store.database import migrate
from service.store.database.bulk import insert_rows, update_rows
from service.store.database.database import Database, open_database
from service.store.jobs import claims, events, jobs
from service.store.trials import trials
from service.wire.models import EventKind, JobState
from service.wire.requests import JobCreate, Strategy, Workload
from tests.integration.service import coordinating
from tests.postgres import Server
from tests.service_fixtures import add_job

TRIALS = 16


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    with postgres.database() as opened:
        yield opened


def submit(database: Database, seed: int) -> UUID:
    request = JobCreate(
        workload=Workload(operator="matmul:32,32,32"),
        max_trials=TRIALS,
        seed=seed,
        strategy=Strategy.RANDOM,
        warm_start=False,
    )
    return submit_job(database, request)[0].id


@contextmanager
def coordinator(database: Database, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Run a coordinator in a process of its own while the body runs."""
    with subprocess.Popen(
        [sys.executable, "-m", coordinating.__name__, database.url, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints; pytest's timeout bounds the wait."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def check_whole(database: Database, job_id: UUID) -> int:
    """Check that a job ended with each trial there once; return how often it was claimed."""
    with database.read() as session:
        job = jobs.get(session, job_id)
        assert (job.state, job.error, job.num_measured) == (JobState.SUCCEEDED, None, TRIALS)
        rows = trials.of_job(session, job_id)
        seen = events.after(session, job_id, 0)
    assert [row.number for row in rows] == list(range(TRIALS))
    assert len({row.candidate_key for row in rows}) == TRIALS
    states = [event.payload["state"] for event in seen if event.kind == EventKind.STATE]
    return states.count("running")


def test_rows_that_are_inserted_together_keep_their_values(postgres: Server) -> None:
    letters = random.Random(0)
    texts = [
        "",
        " ",
        "NULL",
        "null",
        "{}",
        '"',
        "\\",
        "\\\\",
        "a,b",
        "\n\t",
        "%s %(a)s",
        "é\U0001f600",
    ]
    texts += ["".join(letters.choices('ab\\",{} \n', k=12)) for _ in range(200)]
    at = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
    numbers = [0.1, -0.0, 1e-300, inf, 5.0]
    rows = [
        {
            "id": uuid4(),
            "name": name,
            "at": at + timedelta(seconds=n) if n % 3 else None,
            "is_new": n % 2 == 0,
            "number": numbers[n % len(numbers)],
            "content": {"text": name, "list": [n, None, "x"]},
        }
        for n, name in enumerate(texts)
    ]
    table = Table(
        "kinds",
        MetaData(),
        Column("id", Uuid, primary_key=True),
        Column("name", String(20)),
        Column("at", DateTime(timezone=True)),
        Column("is_new", Boolean),
        Column("number", Float),
        Column("content", JSON),
    )
    with postgres.database() as opened, opened.write() as session:
        table.create(session.connection())
        insert_rows(session, table, rows)
        stored = {row["id"]: dict(row) for row in session.execute(table.select()).mappings()}
        assert stored == {row["id"]: row for row in rows}
        changed = [{"id": row["id"], "name": None, "number": 1.5} for row in rows]
        update_rows(session, table, "id", changed)
        query = select(table.c.name, table.c.number).distinct()
        assert [tuple(row) for row in session.execute(query)] == [(None, 1.5)]


def test_two_coordinators_never_drive_one_job(database: Database) -> None:
    ids = [submit(database, seed) for seed in range(4)]
    with coordinator(database, "hold") as first, coordinator(database, "hold") as second:
        assert line(first) == line(second) == "holding"
        with database.read() as session:
            owners = [jobs.get(session, job_id).lease_owner for job_id in ids]
        assert len(set(filter(None, owners))) == 2
        for process in (first, second):
            print(file=process.stdin, flush=True)
        driven = [int(line(process).removeprefix("drove ")) for process in (first, second)]
    assert sum(driven) == len(ids)
    assert [check_whole(database, job_id) for job_id in ids] == [1] * len(ids)


def test_the_job_of_a_killed_coordinator_is_taken_over(database: Database) -> None:
    job_id = submit(database, 0)
    with coordinator(database, "hold") as first:
        assert line(first) == "holding"
        with coordinator(database) as second:
            assert line(second) == "drove 0"
        first.kill()
        first.wait()
        with coordinator(database) as third:
            assert line(third) == "drove 1"
    assert check_whole(database, job_id) == 2


def test_a_clock_that_is_ahead_neither_takes_a_lease_nor_delays_others(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(hours=1)

    first, second = add_job(database), add_job(database)
    with database.write() as session:
        assert [row.id for row in claims.claim(session, Owner("other", 1, 1, "a"))] == [first]
    monkeypatch.setattr("service.store.database.base.datetime", Ahead)
    with database.write() as session:
        (claimed,) = claims.claim(session, Owner.here())
    assert claimed.id == second
    assert claimed.lease_until is not None
    assert claimed.retry_at is not None
    assert max(claimed.lease_until, claimed.retry_at) < datetime.now(UTC) + timedelta(minutes=5)


def test_a_database_that_is_not_there_is_named(database: Database) -> None:
    url = make_url(database.url).set(database="nothing")
    with pytest.raises(ServeError, match='database "nothing" does not exist'):
        open_database(url.render_as_string())


def test_a_database_that_cannot_store_every_text_is_refused(database: Database) -> None:
    url = make_url(database.url)
    other = url.set(database="ascii")
    options = {"host": str(url.query["host"]), "user": str(url.username), "autocommit": True}
    with psycopg.connect(dbname="postgres", **options) as connection:  # type: ignore[arg-type]
        connection.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
        try:
            with pytest.raises(ServeError, match=r"its encoding is SQL_ASCII.*--encoding=UTF8"):
                open_database(other.render_as_string())
        finally:
            connection.execute("DROP DATABASE ascii")


def test_a_password_is_not_shown() -> None:
    with pytest.raises(ServeError, match=r"loopwright:\*\*\*@") as refused:
        open_database("postgresql://loopwright:s3cret@127.0.0.1:1/x")
    assert "s3cret" not in str(refused.value)


def test_a_newer_database_is_refused_and_untouched(database: Database) -> None:
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    try:
        with pytest.raises(ServeError, match=r"newer version of Loopwright.*'9999'"):
            open_database(database.url)
    finally:
        with database.write() as session:
            session.execute(text(f"UPDATE alembic_version SET version_num = '{migrate.head()}'"))


def test_a_read_changes_nothing(database: Database) -> None:
    with database.read() as session, pytest.raises(DBAPIError, match="read-only transaction"):
        session.execute(text("DELETE FROM jobs"))


def test_a_read_sees_one_state_throughout(database: Database) -> None:
    with database.read() as session:
        assert jobs.count_by_state(session) == {}
        add_job(database)
        assert jobs.count_by_state(session) == {}
    with database.read() as session:
        assert jobs.count_by_state(session) == {JobState.QUEUED: 1}


def test_a_writer_waits_for_another_and_not_for_ever(database: Database) -> None:
    with closing(open_database(database.url, busy_timeout_secs=0.2)) as other:
        with database.write() as session:
            session.execute(text("SELECT 1"))  # a transaction begins with its first statement
            with pytest.raises(OperationalError, match="lock timeout"), other.write() as late:
                late.execute(text("SELECT 1"))
        with other.write() as late:
            assert late.scalar(text("SELECT 1")) == 1


def test_a_password_comes_from_the_file_that_the_url_names(
    postgres: Server, tmp_path: Path
) -> None:
    """This server accepts any password; that of `tests/acceptance/deploy` checks it."""
    file = tmp_path / "password"
    url = make_url(postgres.url).update_query_dict({"password_file": str(file)})
    with pytest.raises(ServeError, match=f"cannot read the password file {file}: No such file"):
        open_database(url.render_as_string())
    file.write_text("\n")
    with pytest.raises(ServeError, match="is empty"):
        open_database(url.render_as_string())
    file.write_text("secret\n")
    with closing(open_database(url.render_as_string())) as database:
        assert "secret" not in database.shown
        # Children that train cost models open it by its URL.
        assert make_url(database.url).query["password_file"] == str(file)
        assert database.trouble() is None


def test_a_url_with_two_passwords_is_refused() -> None:
    with pytest.raises(ServeError, match="expected one password, or one password_file") as caught:
        open_database("postgresql://user:secret@127.0.0.1/name?password_file=/missing")
    assert "secret" not in str(caught.value)


def test_a_busy_process_keeps_its_connections(database: Database) -> None:
    def servers() -> set[int]:
        """Return the server processes of twenty transactions at a time."""
        with ExitStack() as stack:
            sessions = [stack.enter_context(database.read()) for _ in range(20)]
            return {session.scalar(text("SELECT pg_backend_pid()")) or 0 for session in sessions}

    assert servers() == servers()
