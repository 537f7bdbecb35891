"""How long a job waits after claims in vain, and when it is given up."""

from __future__ import annotations

import pytest

from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs import blame, jobs
from service.wire.models import JobState
from tests.service_fixtures import add_job

pytestmark = pytest.mark.on_both_databases


def test_waits_double_up_to_five_minutes() -> None:
    secs = [blame.delay(num).total_seconds() for num in (0, 1, 2, 3, 4, 9, 10, 11, 10_000)]
    assert secs == [0, 0, 1, 2, 4, 128, 256, 300, 300]


def test_a_crash_counts_only_for_a_suspect(database: Database) -> None:
    with database.write() as session:
        row = jobs.get(session, add_job(database))
        for crashes in (0, 1, 2):
            blame.note_claim(row)
            blame.begin_work([row])
            assert row.crashes == crashes
        blame.count_error(row, is_own=False, has_begun=True)
        assert row.crashes == 1
        blame.count_error(row, is_own=True, has_begun=False)
        assert row.crashes == 2
        row.progress_at = utc_now()
        blame.note_progress(session, row)
        assert (row.crashes, row.fruitless_claims, row.retry_at) == (0, 0, None)


def test_a_job_alone_is_given_up_and_one_among_many_later(database: Database) -> None:
    alone, *others = (add_job(database) for _ in range(3))
    with database.write() as session:
        row = jobs.get(session, alone)
        row.crashes = blame.MAX_CRASHES - 1
        assert blame.why_given_up(session, row) is None
        row.crashes = blame.MAX_CRASHES
        reason = blame.why_given_up(session, row)
        assert reason is not None
        assert f"crashed {blame.MAX_CRASHES} times" in reason
        for other in (jobs.get(session, job_id) for job_id in others):
            other.crashes, other.claimed_at, other.state = 1, utc_now(), JobState.RUNNING
        session.flush()
        assert blame.why_given_up(session, row) is None
