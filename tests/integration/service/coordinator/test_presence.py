"""Coordinators on a PostgreSQL server see each other's end by session locks, not by leases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Event

import pytest
from sqlalchemy import text

from service.common.errors import LeaseLostError
from service.common.owner import Owner
from service.coordinator.coordinator import Coordinator
from service.coordinator.presence import Presence
from service.store.database import session_locks
from service.store.database.database import Database
from service.store.jobs import claims, events, jobs, leases
from service.wire.models import JobState
from tests.integration.service.coordinating import cost
from tests.integration.service.driving import wait_for_end
from tests.integration.service.store.test_postgresql import check_whole, coordinator, line, submit
from tests.patience import PATIENCE_SECS
from tests.postgres import Server
from tests.service_fixtures import add_job
from tuner.measurer.memory import MemoryMeasurer

ELSEWHERE = Owner("another host", 1, 1, "a", lock=7)


@pytest.fixture
def database(postgres: Server) -> Iterator[Database]:
    with postgres.database() as opened:
        yield opened


def test_a_killed_coordinator_of_another_host_is_replaced_before_its_lease_ends(
    database: Database,
) -> None:
    job_id = submit(database, 0)
    with coordinator(database, "hold", "elsewhere") as first:
        assert line(first) == "holding"
        first.kill()
        first.wait()
    with database.read() as session:
        lease_until = jobs.get(session, job_id).lease_until
    second = Coordinator(database, MemoryMeasurer(cost))
    second.start()
    assert wait_for_end(database, job_id).state is JobState.SUCCEEDED
    assert second.stop(PATIENCE_SECS)
    assert check_whole(database, job_id) == 2
    with database.read() as session:
        ended_at = events.after(session, job_id, 0)[-1].at
    assert lease_until is not None
    assert ended_at < lease_until


def test_a_coordinator_that_lost_its_lock_loses_its_jobs_and_stores_nothing(
    database: Database,
) -> None:
    job_id, me = add_job(database), Presence(database)
    assert ELSEWHERE.lock is not None
    has_woken = Event()
    with me.kept(has_woken.set):
        lock = session_locks.hold(database, ELSEWHERE.lock)
        with database.write() as session:
            claims.claim(session, ELSEWHERE, lease_secs=3600)
            assert claims.claim(session, Owner.here(me.number), is_gone=me.is_gone) == []
        end = time.monotonic() + PATIENCE_SECS
        while ELSEWHERE.lock not in me._seen:
            assert time.monotonic() < end
            time.sleep(0.02)
        lock.close()  # as if its connection had been cut; the process lives on
        assert has_woken.wait(PATIENCE_SECS)
        with database.write() as session:
            (row,) = claims.claim(session, Owner.here(me.number), is_gone=me.is_gone)
            assert row.id == job_id
        with database.write() as session:
            assert leases.renew(session, {job_id: ELSEWHERE}) == {job_id}
            with pytest.raises(LeaseLostError):
                leases.owned(session, job_id, str(ELSEWHERE))


def test_a_lock_that_is_held_again_at_the_claim_keeps_its_jobs(database: Database) -> None:
    job_id = add_job(database)
    assert ELSEWHERE.lock is not None
    with database.write() as session:
        assert [row.id for row in claims.claim(session, ELSEWHERE)] == [job_id]
    lock = session_locks.hold(database, ELSEWHERE.lock)
    with database.write() as session:
        assert claims.claim(session, Owner.here(), is_gone=lambda _: True) == []
    lock.close()
    wait_for_holders(database, set())
    with database.write() as session:
        assert [r.id for r in claims.claim(session, Owner.here(), is_gone=lambda _: True)]


def wait_for_holders(database: Database, numbers: set[int]) -> None:
    """Wait until exactly these locks are held: the server ends a connection after `close`."""
    end = time.monotonic() + PATIENCE_SECS
    while holders(database) != numbers:
        assert time.monotonic() < end
        time.sleep(0.02)


def holders(database: Database) -> set[int]:
    with database.read() as session:
        return session_locks.held(session)


def test_a_lost_lock_is_taken_again_and_ends_with_its_last_user(database: Database) -> None:
    presence = Presence(database)
    assert presence.number is not None
    with presence.kept(print):
        with presence.kept(print):
            assert holders(database) == {presence.number}
        assert holders(database) == {presence.number}
        with database.write() as session:
            session.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks"
                    " WHERE locktype = 'advisory' AND objid = :number"
                ),
                {"number": presence.number},
            )
        wait_for_holders(database, {presence.number})
    wait_for_holders(database, set())


def test_an_owner_without_a_lock_keeps_its_lease(database: Database) -> None:
    add_job(database)
    with database.write() as session:
        claims.claim(session, Owner("another host", 1, 1, "a"))
        assert claims.claim(session, Owner.here(), is_gone=lambda _: True) == []
