"""Databases of every earlier revision, with rows in all tables, keep their content when upgraded.

The rows are written by this version and then downgraded, so that each revision has what it can
hold. `tests/integration/service/records/test_earlier_versions.py` upgrades a file that an earlier
version wrote.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import JSON, Column, Connection, Enum, Table, insert, inspect, select
from sqlalchemy import table as table_named
from sqlalchemy.orm import Session
from sqlalchemy.sql import text

from service.common.owner import Owner
from service.coordinator.coordinator import Coordinator
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import schema, tokens, warm_starts
from service.store.database import migrate
from service.store.database.base import UtcDateTime, utc_now
from service.store.database.database import Database, open_database
from service.store.jobs import claims
from service.wire.models import JobState
from service.wire.server_models import Scope
from tests.integration.service.driving import Interrupting, drive, keys, read, rows, submit
from tests.integration.service.recorded import NUM_TRIALS, SPECS, TARGETS, History, file_of, put
from tests.postgres import Server
from tests.public.cli.commands import run

REVISIONS = [f"{number:04}" for number in range(1, int(migrate.head()))]
RENAMED = {
    ("jobs", "trials"): "max_trials",
    ("jobs", "seconds"): "max_secs",
    ("groups", "trials"): "max_trials",
    ("baselines", "number"): "trial_number",
}
DERIVED = {
    "workloads": ("operator_key", "shape", "dtype"),
    "jobs": ("progress",),
    "trials": ("decisions",),
    "sketches": ("job_id", "name", "labels"),
}
"""Columns that an upgrade computes of others; the current version writes the same."""
GROUP = UUID(int=7)
SOME_ID = UUID(int=8)
SOME_JOB = UUID(int=100)
Content: TypeAlias = dict[str, list[dict[str, Any]]]
"""The rows of each table."""


@dataclass
class Stored:
    """A database of this version before any downgrade, and what each revision held of it."""

    finished: UUID
    begun: UUID
    token: str
    content: Content
    expected_keys: list[str]
    earlier: dict[str, Content] = field(default_factory=dict)


def content_of(connection: Connection) -> Content:
    """Return all rows of all tables, as the database has them."""
    content: Content = {}
    for name in sorted(set(inspect(connection).get_table_names()) - {migrate.VERSION_TABLE}):
        result = connection.execute(select(text("*")).select_from(table_named(name)))
        content[name] = sorted((dict(row) for row in result.mappings()), key=repr)
    return content


def fill(database: Database) -> Stored:
    """Write rows into all tables: an ended job, one begun by a process that died, and others."""
    histories = [
        History(SOME_JOB, SPECS[0], TARGETS[0], seed=5),
        *(History(UUID(int=101 + n), SPECS[n], TARGETS[1], n, GROUP, n + 0.5) for n in range(2)),
    ]
    put(database, file_of([(history, NUM_TRIALS, True) for history in histories]))
    finished = submit(database)
    drive(database)
    undisturbed = submit(database)
    drive(database)
    begun = submit(database)
    interrupted = Interrupting(7, lambda: first.stop(0.0))
    first = Coordinator(database, interrupted)
    assert first.run_one()
    assert len(rows(database, begun)) == 7
    here = Owner.here()
    ended = Owner(here.machine, here.pid, here.started - 1, "ended")
    with database.write() as session:
        assert [row.id for row in claims.claim(session, ended)] == [begun]
        _, token = tokens.create(session, "reader", [Scope.READ])
        warm_starts.keep(session, SOME_JOB)  # the first one, to which other rows refer
        _fill_empty_tables(session)
    expected_keys = keys(database, undisturbed)
    assert len(set(expected_keys)) == 24
    with database.engine.connect() as connection:
        content = content_of(connection)
    assert content.keys() == schema.METADATA.tables.keys()
    empty = {name for name, table_rows in content.items() if not table_rows}
    assert not empty
    return Stored(finished, begun, token, content, expected_keys)


def _fill_empty_tables(session: Session) -> None:
    """Write a row into each table that has none, with any values of its types."""
    for table in schema.METADATA.sorted_tables:
        if session.execute(select(table).limit(1)).first() is None:
            values = {column.name: _value_of(column) for column in table.columns}
            session.execute(insert(table).values(values | _references(session, table)))


def _value_of(column: Column[Any]) -> Any:
    kind = column.type
    if isinstance(kind, Enum):
        assert kind.enum_class is not None
        return next(iter(kind.enum_class))
    if isinstance(kind, UtcDateTime):
        return utc_now()
    if isinstance(kind, JSON):
        return ["a"]
    values = {UUID: SOME_ID, bytes: b"\0\xff", str: "text"}
    return values.get(kind.python_type, 1)


def _references(session: Session, table: Table) -> dict[str, Any]:
    """Return the values of foreign keys: those of the first row that they may refer to."""
    references: dict[str, Any] = {}
    for constraint in table.foreign_key_constraints:
        keys = [element.column for element in constraint.elements]
        row = session.execute(select(*keys).order_by(*keys).limit(1)).one()
        references |= dict(zip(constraint.column_keys, row, strict=True))
    return references


def current_name(table: str, column: str, revision: str) -> str:
    """Return what this version calls a column of a revision."""
    if (table, column) == ("jobs", "owner") and revision < "0005":
        return "lease_owner"
    return RENAMED.get((table, column), column)


def check_content(stored: Stored, upgraded: Content, revision: str) -> None:
    """Check that what a revision held is unchanged, and that what it lacked was computed."""
    for table, expected in stored.earlier[revision].items():
        columns = {column: current_name(table, column, revision) for column in expected[0]}
        found = [{c: row[name] for c, name in columns.items()} for row in upgraded[table]]
        kept = [{c: row[c] for c in columns} for row in expected]
        assert sorted(found, key=repr) == sorted(kept, key=repr), table
    for table, names in DERIVED.items():
        assert _selected(upgraded[table], names) == _selected(stored.content[table], names)


def _selected(table_rows: Sequence[Mapping[str, Any]], names: tuple[str, ...]) -> list[str]:
    return sorted(repr([row[name] for name in names]) for row in table_rows)


def check_reading(database: Database, stored: Stored) -> None:
    """Check that the API of this version shows the ended job with its trials and its winner."""
    job_id = stored.finished
    app = create_app(Dependencies(database))
    headers = {"Authorization": f"Bearer {stored.token}"}
    with TestClient(app, base_url="http://test/api/v1", headers=headers) as client:

        def got(path: str, **params: Any) -> Any:
            return client.get(path, params=params).raise_for_status().json()

        assert len(got("/jobs")["items"]) == len(stored.content["jobs"])
        job = got(f"/jobs/{job_id}")
        assert (job["state"], job["num_measured"]) == ("succeeded", 24)
        numbers = [trial["number"] for trial in got(f"/jobs/{job_id}/trials")["items"]]
        assert numbers == list(range(24))
        best = got("/schedules/best", workload_key=job["workload_key"], target=job["target"])
        assert best["trial_number"] in numbers
        assert best["run_secs"] == job["best_secs"]
        for path in ("/workloads", "/targets"):
            got(path)


def check_resuming(database: Database, stored: Stored) -> None:
    """Check that the begun job ends with the trials of a job that was never interrupted."""
    drive(database)
    assert read(database, stored.begun).state is JobState.SUCCEEDED
    assert keys(database, stored.begun) == stored.expected_keys


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for a file of each revision."""
    return tmp_path_factory.mktemp("revisions")


@pytest.fixture(scope="module")
def stored(folder: Path, empty_database_file: Path) -> Stored:
    """Write a database, downgrade it step by step, and copy the file of each revision."""
    path = Path(shutil.copy(empty_database_file, folder / "walk.db"))
    with closing(open_database(f"sqlite:///{path}")) as database:
        stored = fill(database)
        for revision in reversed(REVISIONS):
            _downgrade(database, stored, revision)
            _copy(database, folder / f"{revision}.db")
    return stored


def _downgrade(database: Database, stored: Stored, revision: str) -> None:
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection, revision)
        stored.earlier[revision] = content_of(connection)


def _copy(database: Database, path: Path) -> None:
    with database.engine.connect() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        connection.rollback()
        raw.execute("VACUUM INTO ?", (str(path),))


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_an_earlier_revision_keeps_its_content_and_its_jobs(
    revision: str, stored: Stored, folder: Path
) -> None:
    url = f"sqlite:///{folder / revision}.db"
    migrated = run("migrate", "--db", url)
    assert migrated.exit_code == 0, migrated.output
    with closing(open_database(url)) as database:
        with database.engine.connect() as connection:
            check_content(stored, content_of(connection), revision)
        if revision in {REVISIONS[0], REVISIONS[-1]}:  # the oldest, and that of the last version
            check_reading(database, stored)
            check_resuming(database, stored)


def test_a_postgresql_database_of_any_revision_keeps_its_content(postgres: Server) -> None:
    with postgres.database() as database:
        stored = fill(database)
        for revision in (*REVISIONS[:0:-4], REVISIONS[0]):
            # Each downgrade loses what its revision cannot hold; the later ones do not need it.
            _downgrade(database, stored, revision)
            with database.engine.execution_options(writes=True).begin() as connection:
                migrate.upgrade(connection)
                check_content(stored, content_of(connection), revision)
        check_reading(database, stored)
        check_resuming(database, stored)
