from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from compiler.ir.text.printer import script
from compiler.ops.spec import from_spec
from service.intake.request_validation import read_workload
from service.store import schema
from service.store.database import migrate
from service.store.database.database import Database
from service.store.jobs import groups, jobs
from service.store.jobs.jobs import JobRow
from service.store.workloads import WorkloadRow
from service.wire.requests import Workload
from tests.service_fixtures import WORKLOAD, add_job

pytestmark = pytest.mark.on_both_databases


def test_the_scripts_make_exactly_the_tables_of_the_rows(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.METADATA) == []


def test_every_row_class_is_in_the_schema() -> None:
    assert {row.__tablename__ for row in schema.ROWS} == set(schema.METADATA.tables)


def test_down_and_up_again_with_rows_in_the_tables(database: Database) -> None:
    add_job(database)
    writer = database.engine.execution_options(writes=True)
    with writer.begin() as connection:
        migrate.downgrade(connection)
        assert inspect(connection).get_table_names() == [migrate.VERSION_TABLE]
    with writer.begin() as connection:
        migrate.upgrade(connection)
    job_id = add_job(database)
    with database.read() as session:
        assert [row.id for row in jobs.newest(session, limit=10)] == [job_id]


def test_a_migration_that_fails_leaves_the_schema_as_it_was(database: Database) -> None:
    def move_down_and_fail() -> None:
        with database.engine.execution_options(writes=True).begin() as connection:
            migrate.downgrade(connection)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        move_down_and_fail()
    with database.engine.connect() as connection:
        assert set(schema.METADATA.tables) < set(inspect(connection).get_table_names())


def test_workloads_of_an_older_version_learn_their_operator(database: Database) -> None:
    spec = "conv2d:1,8,16,16,8,3,2,1"
    expected = read_workload(Workload(operator=spec))
    insert = "INSERT INTO workloads (key, name, script, flops, created_at) VALUES"
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection, "0001")
        for key, program in ((expected.key, script(from_spec(spec))), (WORKLOAD.key, "# a script")):
            values = {"key": key, "script": program, "now": datetime.now(UTC)}
            connection.execute(text(f"{insert} (:key, 'n', :script, 1, :now)"), values)
        migrate.upgrade(connection)
    with database.read() as session:
        row = session.get_one(WorkloadRow, expected.key)
        assert (row.operator_key, row.shape) == (expected.operator_key, expected.shape)
        unreadable = session.get_one(WorkloadRow, WORKLOAD.key)
        assert (unreadable.operator_key, unreadable.shape) == (None, None)


def test_budgets_keep_their_values_under_new_names(database: Database) -> None:
    job_id = add_job(database, trials=33)
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection, "0012")
        assert connection.execute(text("SELECT trials, seconds FROM jobs")).all() == [(33, None)]
        connection.execute(text("UPDATE jobs SET seconds = 2.5"))
        migrate.upgrade(connection)
    with database.read() as session:
        row = session.get_one(JobRow, job_id)
        assert (row.max_trials, row.max_secs) == (33, 2.5)


def test_jobs_of_an_older_version_have_no_texts(database: Database) -> None:
    job_id = add_job(database)
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection, "0019")
        migrate.upgrade(connection)
    with database.read() as session:
        row = session.get_one(JobRow, job_id)
        assert (row.name, row.note, row.tags) == (None, None, [])


def test_jobs_of_an_older_version_have_no_webhook(database: Database) -> None:
    job_id = add_job(database)
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection, "0020")
        migrate.upgrade(connection)
    with database.read() as session:
        assert session.get_one(JobRow, job_id).webhook is None


def test_groups_keep_their_budgets_under_a_new_name(database: Database) -> None:
    with database.write() as session:
        group_id = groups.create(session, 48).id
    with database.engine.execution_options(writes=True).begin() as connection:
        migrate.downgrade(connection, "0013")
        assert connection.execute(text("SELECT trials FROM groups")).scalar() == 48
        migrate.upgrade(connection)
    with database.read() as session:
        assert groups.get(session, group_id).max_trials == 48


def test_a_database_knows_all_rows_whatever_else_was_imported() -> None:
    code = (
        "from service.store.database.base import Base;"
        "from sqlalchemy.orm import configure_mappers;"
        " configure_mappers(); assert 'finals' in Base.metadata.tables"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
