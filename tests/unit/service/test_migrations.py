from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from service.store import jobs, migrate, schema
from service.store.database import Database
from tests.service_fixtures import add_job


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
        assert [row.id for row in jobs.page(session, limit=10)] == [job_id]


def test_a_migration_that_fails_leaves_the_schema_as_it_was(database: Database) -> None:
    def move_down_and_fail() -> None:
        with database.engine.execution_options(writes=True).begin() as connection:
            migrate.downgrade(connection)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        move_down_and_fail()
    with database.engine.connect() as connection:
        assert set(schema.METADATA.tables) < set(inspect(connection).get_table_names())
