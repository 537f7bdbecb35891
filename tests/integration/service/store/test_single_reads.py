"""Single statements on a connection of their own."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, text

from service.store.database.database import Database
from service.store.database.single_reads import SingleReads
from service.store.jobs.jobs import JobRow
from tests.postgres import Server
from tests.service_fixtures import add_job

_PRIORITIES = select(func.sum(JobRow.priority))
_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


def priorities(reads: SingleReads) -> int | None:
    [row] = reads.rows(_PRIORITIES, {})
    return row[0]


@pytest.mark.on_both_databases
def test_a_statement_sees_what_was_committed_before_it_and_nothing_else(
    database: Database,
) -> None:
    reads = database.single_reads()
    add_job(database, priority=1)
    assert priorities(reads) == 1
    with database.write() as session:
        session.execute(text("UPDATE jobs SET priority = 2"))
        assert priorities(reads) == 1
    assert priorities(reads) == 2


def test_between_statements_no_transaction_is_open(postgres: Server) -> None:
    with postgres.database() as database:
        reads = database.single_reads()
        for _ in range(2):
            priorities(reads)
            with database.read() as session:
                assert set(session.scalars(text(f"SELECT state {_OTHERS}"))) <= {"idle"}
        assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_reads_go_on_after_the_server_closed_the_connection(postgres: Server) -> None:
    with postgres.database() as database:
        reads = database.single_reads()
        assert priorities(reads) is None
        add_job(database, priority=1)
        with database.write() as session:
            session.execute(text(f"SELECT pg_terminate_backend(pid) {_OTHERS}"))
        assert priorities(reads) == 1
