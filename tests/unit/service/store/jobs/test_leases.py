from __future__ import annotations

from dataclasses import replace
from threading import Thread
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select

from service.common.errors import LeaseLostError, ServiceNotFoundError
from service.common.owner import Owner
from service.store.database.database import Database
from service.store.jobs import blame, claims, controls, events, jobs, leases
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from tests.service_fixtures import add_job, let_time_pass
from tuner.loop.budget import StopReason

pytestmark = pytest.mark.on_both_databases

ME = Owner.here()
OTHER = Owner.here()  # another coordinator, alive
ELSEWHERE = replace(OTHER, machine="another host")
DEAD = replace(OTHER, started=OTHER.started - 1)


def claim(database: Database, owner: Owner, lease_secs: float = 30.0) -> JobRow | None:
    with database.write() as session:
        rows = claims.claim(session, owner, lease_secs=lease_secs)
    assert len(rows) <= 1, "none of these jobs is in a group"
    return rows[0] if rows else None


def state_of(database: Database, job_id: UUID) -> JobState:
    with database.read() as session:
        return jobs.get(session, job_id).state


def claimed(database: Database, owner: Owner, lease_secs: float = 30.0) -> UUID:
    row = claim(database, owner, lease_secs)
    assert row is not None
    return row.id


def test_nothing_to_claim(database: Database) -> None:
    assert claim(database, ME) is None


def test_jobs_are_claimed_in_the_order_they_came(database: Database) -> None:
    ids = [add_job(database) for _ in range(3)]
    assert [claimed(database, ME) for _ in range(3)] == ids
    assert claim(database, ME) is None


def test_jobs_for_a_kind_of_target_may_be_left_to_others(database: Database) -> None:
    job_id = add_job(database)
    with database.write() as session:
        assert claims.claim(session, ME, leave=["cpu/znver3", "cpu/z"]) == []
        assert [row.id for row in claims.claim(session, ME, leave=["cpu/z"])] == [job_id]


def test_a_claimed_job_runs(database: Database) -> None:
    job_id = add_job(database)
    row = claim(database, ME)
    assert row is not None
    assert (row.id, row.state, row.lease_owner) == (job_id, JobState.RUNNING, str(ME))
    assert row.started_at is not None


@pytest.mark.parametrize("owner", [OTHER, ELSEWHERE])
def test_a_job_with_a_live_lease_is_left_alone(database: Database, owner: Owner) -> None:
    add_job(database)
    claimed(database, owner)
    assert claim(database, ME) is None


def test_a_job_whose_owner_is_dead_is_free_at_once(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, DEAD)
    assert claimed(database, ME) == job_id


def test_a_job_whose_lease_ran_out_is_free(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, ELSEWHERE, lease_secs=-1.0)
    assert claimed(database, ME) == job_id


def test_a_free_job_is_seen_without_the_lock_of_writers(database: Database) -> None:
    def may_claim() -> bool:
        return claims.look(database.single_reads(), lambda _: False).num_free > 0

    assert not may_claim()
    add_job(database)
    assert may_claim()
    claimed(database, ELSEWHERE)
    assert not may_claim()
    with database.write() as session:
        session.scalars(select(JobRow)).one().lease_owner = str(DEAD)
    assert may_claim()


def test_a_job_is_claimed_once_however_many_try(database: Database) -> None:
    add_job(database)
    found: list[JobRow | None] = []

    def try_it() -> None:
        found.append(claim(database, Owner.here()))

    threads = [Thread(target=try_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([row for row in found if row is not None]) == 1


def test_renewing_keeps_a_lease(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, ELSEWHERE, lease_secs=-1.0)
    with database.write() as session:
        assert not leases.renew(session, {job_id: ELSEWHERE})
    assert claim(database, ME) is None


def test_leases_of_several_owners_are_renewed_at_once_and_the_lost_ones_named(
    database: Database,
) -> None:
    kept, lost, ended = (add_job(database) for _ in range(3))
    for _ in range(3):
        claimed(database, ELSEWHERE, lease_secs=30.0)
    with database.write() as session:
        leases.finish(session, ended, ELSEWHERE, JobState.FAILED, stop_reason=StopReason.BUDGET)
    with database.read() as session:
        before = jobs.get(session, kept).lease_until
    with database.write() as session:
        owners = {kept: ELSEWHERE, lost: OTHER, ended: ELSEWHERE, uuid4(): ME}
        assert leases.renew(session, owners) == set(owners) - {kept}
    with database.read() as session:
        after = jobs.get(session, kept).lease_until
        assert jobs.get(session, ended).lease_until is None
    assert before is not None
    assert after is not None
    assert after > before


def test_the_former_owner_can_do_nothing(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, DEAD)
    claimed(database, ME)
    with database.write() as session:
        assert leases.renew(session, {job_id: DEAD}) == {job_id}
    with pytest.raises(LeaseLostError), database.write() as session:
        leases.release(session, job_id, DEAD)
    with pytest.raises(LeaseLostError), database.write() as session:
        leases.finish(session, job_id, DEAD, JobState.SUCCEEDED, stop_reason=StopReason.BUDGET)
    assert state_of(database, job_id) is JobState.RUNNING


def test_a_released_job_waits_again_and_keeps_its_start(database: Database) -> None:
    job_id = add_job(database)
    first = claim(database, ME)
    with database.write() as session:
        leases.release(session, job_id, ME)
    assert state_of(database, job_id) is JobState.QUEUED
    second = claim(database, OTHER)
    assert first is not None
    assert second is not None
    assert second.started_at == first.started_at


def test_a_job_given_up_again_and_again_fails_with_the_error(database: Database) -> None:
    job_id = add_job(database)
    for _ in range(blame.MAX_CRASHES):
        let_time_pass(database)
        claimed(database, ME)
        with database.write() as session:
            reason = "internal error: it broke"
            leases.give_up(session, job_id, ME, reason, is_own=True, has_begun=False)
    with database.read() as session:
        row = jobs.get(session, job_id)
    assert (row.state, row.error) == (JobState.FAILED, "internal error: it broke")


def test_cancelling_a_waiting_job_ends_it(database: Database) -> None:
    job_id = add_job(database)
    with database.write() as session:
        controls.cancel(session, job_id)
    assert state_of(database, job_id) is JobState.CANCELLED
    assert claim(database, ME) is None


def test_cancelling_a_running_job_tells_its_owner(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, ME)
    with database.write() as session:
        assert controls.cancel(session, job_id).state is JobState.RUNNING
    assert controls.of_jobs(database.single_reads(), [job_id])[job_id].is_cancelled


def test_a_cancelled_job_whose_owner_died_ends_at_the_next_claim(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, DEAD)
    with database.write() as session:
        controls.cancel(session, job_id)
    assert claim(database, ME) is None
    assert state_of(database, job_id) is JobState.CANCELLED


def test_cancelling_a_job_that_ended_changes_nothing(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, ME)
    with database.write() as session:
        leases.finish(session, job_id, ME, JobState.SUCCEEDED, stop_reason=StopReason.BUDGET)
    with database.write() as session:
        assert controls.cancel(session, job_id).state is JobState.SUCCEEDED


def test_cancelling_a_job_that_is_not_there(database: Database) -> None:
    with pytest.raises(ServiceNotFoundError), database.write() as session:
        controls.cancel(session, uuid4())


def test_every_change_of_state_is_an_event(database: Database) -> None:
    job_id = add_job(database)
    claimed(database, ME)
    with database.write() as session:
        leases.finish(
            session, job_id, ME, JobState.FAILED, stop_reason=StopReason.BUDGET, error="why"
        )
    with database.read() as session:
        seen = events.after(session, job_id, 0)
    assert [event.payload["state"] for event in seen] == ["queued", "running", "failed"]
    assert seen[-1].payload["error"] == "why"
    assert [event.id for event in seen] == sorted({event.id for event in seen})
    with database.read() as session:
        assert events.after(session, job_id, seen[1].id) == seen[2:]
