"""Databases, jobs and trials for the tests of the service."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
import structlog

from loopwright.models import Strategy
from service.store import jobs, targets, workloads
from service.store.database import Database, open_database
from service.store.jobs import NewJob
from service.store.workloads import NewWorkload

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


@pytest.fixture
def database(database_file: Path) -> Iterator[Database]:
    opened = open_database(f"sqlite:///{database_file}")
    yield opened
    opened.close()


def add_job(database: Database, *, trials: int = 16) -> UUID:
    """Queue a job of `WORKLOAD` for `TARGET`."""
    with database.write() as session:
        workloads.ensure(session, WORKLOAD)
        targets.ensure(session, TARGET, "cpu/znver3")
        job = NewJob(
            workload_key=WORKLOAD.key,
            workload_name=WORKLOAD.name,
            target=TARGET,
            trials=trials,
            seed=0,
            strategy=Strategy.RANDOM,
        )
        return jobs.submit(session, job).id


def problem(response: httpx2.Response, status: int) -> dict[str, Any]:
    """Check that the answer is a problem document of this status, and return it."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status
    assert body["title"]
    assert body["type"] == "about:blank"
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
