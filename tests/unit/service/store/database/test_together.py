from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from uuid import UUID

import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session

from service.store.database.database import Database
from service.store.database.together import GroupCommit
from service.store.jobs import jobs
from tests.patience import PATIENCE_SECS
from tests.service_fixtures import add_job

pytestmark = pytest.mark.on_both_databases


def priority(database: Database, job_id: UUID) -> int:
    with database.read() as session:
        return jobs.get(session, job_id).priority


def raising(job_id: UUID, *, error: Exception | None = None) -> Callable[[Session], int]:
    """Return an act that raises the priority of a job by one, and then fails if told to."""

    def act(session: Session) -> int:
        row = jobs.get(session, job_id, lock=True)
        row.priority += 1
        session.flush()
        if error is not None:
            raise error
        return row.priority

    return act


def run_together(commits: GroupCommit, acts: list[Callable[[Session], int]]) -> list[object]:
    """Run acts in one transaction; return their results or their errors."""
    is_held, is_free = Event(), Event()
    outcomes: list[object] = [None] * len(acts)

    def hold(_: Session) -> None:
        is_held.set()
        assert is_free.wait(PATIENCE_SECS)

    def run(number: int) -> None:
        try:
            outcomes[number] = commits.write(acts[number])
        except Exception as error:
            outcomes[number] = error

    holder = Thread(target=commits.write, args=(hold,))
    holder.start()
    assert is_held.wait(PATIENCE_SECS)
    threads = [Thread(target=run, args=(number,)) for number in range(len(acts))]
    for number, thread in enumerate(threads):
        thread.start()
        while len(commits._waiting) <= number:
            assert thread.is_alive()
    is_free.set()
    for thread in (holder, *threads):
        thread.join(PATIENCE_SECS)
    return outcomes


def test_an_act_is_committed_when_it_returns(database: Database) -> None:
    job_id = add_job(database)
    assert GroupCommit(database).write(raising(job_id)) == 1
    assert priority(database, job_id) == 1


def test_acts_that_wait_run_in_one_transaction_in_their_order(database: Database) -> None:
    job_id = add_job(database)
    assert run_together(GroupCommit(database), [raising(job_id)] * 5) == [1, 2, 3, 4, 5]
    assert priority(database, job_id) == 5


def test_an_error_undoes_its_own_act_alone(database: Database) -> None:
    job_id = add_job(database)
    error = ValueError("of this act")
    acts = [raising(job_id), raising(job_id, error=error), raising(job_id)]
    assert run_together(GroupCommit(database), acts) == [1, error, 2]
    assert priority(database, job_id) == 2


def test_no_act_succeeds_if_the_transaction_fails(database: Database) -> None:
    job_id = add_job(database)

    def fail(_: object) -> None:
        raise OSError("the disk is full")

    commits = GroupCommit(database)
    event.listen(database.engine, "commit", fail)
    with pytest.raises(OSError, match="the disk is full"):
        commits.write(raising(job_id))
    event.remove(database.engine, "commit", fail)
    assert priority(database, job_id) == 0
    assert commits.write(raising(job_id)) == 1
