"""Which job is claimed next, and what becomes of jobs whose claims come to nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from service.common.owner import Owner
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs import blame, claims, controls, groups, jobs, leases
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from tests.service_fixtures import add_job, let_time_pass
from tuner.loop.budget import StopReason

pytestmark = pytest.mark.on_both_databases

ME = Owner.here()
DEAD = replace(ME, started=ME.started - 1)


def claim(database: Database, owner: Owner = DEAD, *, works: bool = True) -> UUID | None:
    """Claim a job, and begin its own work if the host `works`."""
    with database.write() as session:
        rows = claims.claim(session, owner)
        if works:
            blame.begin_work(rows)
        return rows[0].id if rows else None


def row_of(database: Database, job_id: UUID) -> JobRow:
    with database.read() as session:
        return jobs.get(session, job_id)


def measure(database: Database, job_id: UUID) -> None:
    """Note that a trial of a job was measured."""
    with database.write() as session:
        row = jobs.get(session, job_id)
        row.progress_at = utc_now()
        blame.note_progress(session, row)


def finish(database: Database, job_id: UUID, owner: Owner, secs: float) -> None:
    with database.write() as session:
        leases.finish(session, job_id, owner, JobState.SUCCEEDED, stop_reason=StopReason.BUDGET)
        jobs.get(session, job_id).active_secs = secs


def test_a_crashing_job_fails_in_the_end_and_the_others_do_not_wait_for_it(
    database: Database,
) -> None:
    poison, good = add_job(database), add_job(database)
    assert claim(database) == claim(database) == poison  # a kill or two prove nothing
    assert claim(database, ME) == good
    measure(database, good)
    for _ in range(blame.MAX_CRASHES - 1):
        let_time_pass(database)
        assert row_of(database, poison).state is JobState.RUNNING
        assert claim(database) == poison
    let_time_pass(database)
    assert claim(database) is None
    row = row_of(database, poison)
    assert row.state is JobState.FAILED
    assert row.error is not None
    assert "crashed 5 times in a row" in row.error
    assert row_of(database, good).state is JobState.RUNNING


def test_a_host_that_measures_nothing_fails_no_job(database: Database) -> None:
    ids = {add_job(database) for _ in range(3)}
    seen = set()
    for _ in range(40):
        seen.add(claim(database, works=False))
        let_time_pass(database)
    assert seen == ids
    assert {row_of(database, job_id).state for job_id in ids} == {JobState.RUNNING}
    assert claim(database, ME) in ids


def test_while_many_jobs_crash_the_service_is_suspected(database: Database) -> None:
    ids = [add_job(database) for _ in range(3)]
    for _ in range(3 * (blame.MAX_CRASHES + 1)):
        assert claim(database) is not None
        let_time_pass(database)
    rows = [row_of(database, job_id) for job_id in ids]
    assert max(row.crashes for row in rows) >= blame.MAX_CRASHES
    assert {row.state for row in rows} == {JobState.RUNNING}
    for _ in range(60):  # and yet they fail in the end
        claim(database)
        let_time_pass(database)
    assert JobState.RUNNING not in {row_of(database, job_id).state for job_id in ids}


def test_claims_in_vain_are_followed_by_longer_and_longer_waits(database: Database) -> None:
    job_id = add_job(database)
    waits = []
    for _ in range(12):
        assert claim(database, works=False) == job_id
        row = row_of(database, job_id)
        assert row.retry_at is not None
        assert row.claimed_at is not None
        waits.append((row.retry_at - row.claimed_at).total_seconds())
        assert (claim(database) is None) == (waits[-1] > 0) or waits[-1] == 0
        let_time_pass(database)
    assert waits[0] == 0
    assert waits == sorted(waits)
    assert waits[-1] == 300


def test_several_claims_in_vain_in_a_row_delay_those_of_other_jobs_too(
    database: Database,
) -> None:
    for _ in range(8):
        add_job(database)
    in_vain = 0
    while claim(database, works=False) is not None:
        in_vain += 1
        assert in_vain < 8
    last = add_job(database)
    assert claim(database) is None
    with database.write() as session:  # a trial anywhere shows that the service is well
        session.get_one(JobRow, last).progress_at = utc_now()
    assert claim(database) is not None


def test_errors_of_jobs_do_not_delay_claims_of_other_jobs(database: Database) -> None:
    for _ in range(8):
        add_job(database)
    for _ in range(8):
        claimed = claim(database, ME)
        assert claimed is not None
        with database.write() as session:
            leases.give_up(session, claimed, ME, "it broke", is_own=True, has_begun=True)
    assert claim(database, ME) is not None


def test_one_claim_of_a_large_group_in_vain_delays_nothing(database: Database) -> None:
    ids = {add_job(database) for _ in range(8)}
    with database.write() as session:
        group_id = groups.create(session, 8 * 16).id
        for job_id in ids:
            jobs.get(session, job_id).group_id = group_id
    assert claim(database, works=False) in ids
    assert claim(database, works=False) in ids


def test_a_trial_forgives_what_was_in_vain(database: Database) -> None:
    job_id = add_job(database)
    for _ in range(3):
        claim(database)
        let_time_pass(database)
    measure(database, job_id)
    row = row_of(database, job_id)
    assert (row.fruitless_claims, row.crashes, row.retry_at) == (0, 0, None)
    assert claim(database) == job_id


def test_a_job_that_is_to_be_cancelled_ends_however_long_it_would_wait(
    database: Database,
) -> None:
    job_id = add_job(database)
    for _ in range(5):
        claim(database, works=False)
        let_time_pass(database, 6.0)
    with database.write() as session:
        controls.cancel(session, job_id)
    assert claim(database) is None
    assert row_of(database, job_id).state is JobState.CANCELLED


def test_resuming_a_job_that_failed_tries_it_at_once(database: Database) -> None:
    job_id = add_job(database)
    for _ in range(blame.MAX_CRASHES + 2):
        claim(database)
        let_time_pass(database)
    assert row_of(database, job_id).state is JobState.FAILED
    with database.write() as session:
        controls.resume(session, job_id)
    assert claim(database) == job_id


def test_owners_take_turns_by_what_their_jobs_took(database: Database) -> None:
    first, second = (add_job(database, owner="many") for _ in range(2))
    few = add_job(database, owner="few")
    assert claim(database, ME) == first
    # Another coordinator: `many` has a job that runs.
    assert claim(database, ME) == few
    finish(database, few, ME, 60.0)
    finish(database, first, ME, 30.0)
    third = add_job(database, owner="few")
    assert claim(database, ME) == second
    finish(database, second, ME, 100.0)
    fourth = add_job(database, owner="many")
    assert claim(database, ME) == third
    finish(database, third, ME, 0.0)
    let_time_pass(database, timedelta(hours=2).total_seconds())  # what was long ago is forgotten
    fifth = add_job(database, owner="few")
    assert [claim(database, ME) for _ in range(2)] == [fourth, fifth]


def test_a_higher_priority_comes_before_a_fair_share(database: Database) -> None:
    first = add_job(database, owner="many")
    urgent = add_job(database, owner="many", priority=1)
    few = add_job(database, owner="few")
    assert [claim(database, ME) for _ in range(3)] == [urgent, few, first]
