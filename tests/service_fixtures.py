"""Databases, jobs and trials for the tests of the service."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
import structlog

from service.common.new_workload import NewWorkload
from service.http.problems import KINDS
from service.store import targets, workloads
from service.store.database.database import Database, open_database
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow, NewJob
from service.wire.problems import PROBLEM_TYPE
from service.wire.requests import Strategy
from tests import postgres as postgresql

WORKLOAD = NewWorkload(key="w" * 64, name="matmul", script="# a script", flops=1024)
TARGET = "cpu -mcpu=znver3 -num-cores=1"


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Log without the colours and frames that take seconds to draw."""
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.KeyValueRenderer()]
    )


@pytest.fixture(scope="session")
def empty_database_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with all tables and no rows, to copy: migrating takes a while."""
    path = tmp_path_factory.mktemp("database") / "empty.db"
    open_database(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def database_file(empty_database_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(empty_database_file, tmp_path / "loopwright.db"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgresql.Server]:
    """Run a PostgreSQL server of the tests' own."""
    programs = postgresql.find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: there is no pg_ctl")
    with postgresql.serving(programs) as server:
        yield server


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """Open an empty database: SQLite, and PostgreSQL too in tests that are `on_both_databases`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        file = request.getfixturevalue("database_file")
        opened: AbstractContextManager[Database] = closing(open_database(f"sqlite:///{file}"))
    else:
        opened = request.getfixturevalue("postgres").database()
    with opened as database:
        yield database


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that are `on_both_databases` on both."""
    is_on_both = metafunc.definition.get_closest_marker("on_both_databases") is not None
    if is_on_both and "database" in metafunc.fixturenames:
        metafunc.parametrize("database", ["sqlite", "postgresql"], indirect=True)


def add_job(
    database: Database, *, trials: int = 16, owner: str | None = None, priority: int = 0
) -> UUID:
    """Queue a job of `WORKLOAD` for `TARGET`."""
    with database.write() as session:
        workloads.ensure(session, WORKLOAD)
        targets.ensure(session, TARGET, "cpu/znver3")
        job = NewJob(
            workload_key=WORKLOAD.key,
            workload_name=WORKLOAD.name,
            target=TARGET,
            max_trials=trials,
            seed=0,
            strategy=Strategy.RANDOM,
            owner=owner,
            priority=priority,
        )
        return jobs.submit(session, job).id


def let_time_pass(database: Database, secs: float = 3600.0) -> None:
    """Move what the next claims depend on into the past."""
    by = timedelta(seconds=secs)
    with database.write() as session:
        for row in session.query(JobRow):
            row.claimed_at = row.claimed_at and row.claimed_at - by
            row.retry_at = row.retry_at and row.retry_at - by
            row.progress_at = row.progress_at and row.progress_at - by
            row.finished_at = row.finished_at and row.finished_at - by


def problem(response: httpx2.Response, status: int) -> dict[str, Any]:
    """Check that the answer is a problem document of this status, and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["title"]
    assert body["type"].removeprefix(PROBLEM_TYPE) in KINDS
    return dict(body)


def write_text(path: Path) -> None:
    """Write a file that is no database."""
    path.write_text("# my notes, of some length, which are no database\n")


def write_a_newer_one(path: Path) -> None:
    """Write a database as a newer version leaves it."""
    open_database(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
