"""Events of jobs, in an order to resume from."""

from __future__ import annotations

import pytest

from service.store.database.database import Database
from service.store.jobs import events
from service.wire.models import EventKind
from tests.service_fixtures import add_job

pytestmark = pytest.mark.on_both_databases


def test_events_come_in_order_after_the_last_one_seen(database: Database) -> None:
    first, second = add_job(database), add_job(database)
    with database.write() as session:
        before = events.newest_id(session)
        for number in range(5):
            events.append(session, first, EventKind.TRIALS, {"number": number})
            events.append(session, second, EventKind.TRIALS, {"number": -number})
    with database.read() as session:
        seen = events.after(session, first, before)
        assert [event.payload["number"] for event in seen] == [0, 1, 2, 3, 4]
        assert [event.id for event in seen] == sorted({event.id for event in seen})
        later = events.after(session, first, seen[2].id)
        assert [event.payload["number"] for event in later] == [3, 4]
        assert len(events.after(session, first, before, limit=2)) == 2
        newest = events.newest_id(session)
    reads = database.single_reads()
    together = events.of_all_after(reads, before)
    assert [job for job, _ in together] == [first, second] * 5
    assert [event for job, event in together if job == first] == seen
    assert together[-1][1].id == newest
    assert events.of_all_after(reads, before, limit=3) == together[:3]
