"""Submit and list what is tuned as the jobs of a group: models, searches over ranges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.common.caller import Caller
from service.common.errors import Flaw, UnprocessableError
from service.common.paging import CursorKey, page
from service.jobs.groups import group_of, state_of
from service.jobs.jobs import IdempotencyKey, submit_once
from service.reading.lists import contains
from service.reading.queries import SubjectsQuery
from service.store import subjects
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs.groups import GroupRow
from service.store.jobs.jobs import JobRow
from service.store.subjects import RowT, SubjectColumns
from service.wire.models import Page
from service.wire.requests import SearchOptions
from service.wire.subject_reads import SubjectSummary
from tuner.loop.search_loop import ROUND_SIZE

BodyT = TypeVar("BodyT")
ReadT = TypeVar("ReadT")
SummaryT = TypeVar("SummaryT", bound=SubjectSummary)


def submit_subject(
    database: Database,
    request: SearchOptions,
    idempotency_key: str | None,
    caller: Caller,
    kind: type[RowT],
    *,
    read_body: Callable[[], BodyT],
    add: Callable[[Session, BodyT], JobRow],
    read: Callable[[Session, RowT], ReadT],
) -> tuple[ReadT, bool]:
    """Queue the jobs of a subject, or return the subject that the key already made.

    Args:
        caller: The owner of the new jobs.
        kind: The class of the subject.
        read_body: Reads the programs of the request.
        add: Queues the jobs and stores the subject; returns the first job.
        read: Returns the subject as the API shows it.

    Returns:
        The subject, and whether it is new.

    Raises:
        UnprocessableError: If the request is invalid, its trials are fewer than a round, or the key
            was used for another request.
        ForbiddenError: If the caller may never submit this.
        QuotaError: If the jobs in the queue exceed the caller's quota.
    """

    def read_checked() -> BodyT:
        if request.max_trials < ROUND_SIZE:
            detail = f"{request.max_trials} trials are too few: expected {ROUND_SIZE} or more"
            raise UnprocessableError(detail, Flaw(detail, "/max_trials"))
        return read_body()

    def read_made(session: Session, job: JobRow) -> ReadT:
        row = subjects.of_group(session, kind, group_of(job))
        assert row is not None, "its idempotency key belongs to a request for such a subject"
        return read(session, row)

    return submit_once(
        database,
        IdempotencyKey.of(request, idempotency_key, caller),
        caller,
        read_body=read_checked,
        add=add,
        read_result=read_made,
    )


def new_columns(name: str, group: GroupRow, job: JobRow, caller: Caller) -> dict[str, Any]:
    """Return the columns of a new subject.

    Args:
        job: One of its jobs.
    """
    return {
        "id": uuid4(),
        "name": name,
        "target": job.target,
        "owner": caller.name,
        "group_id": group.id,
        "created_at": utc_now(),
    }


def list_subjects(
    session: Session,
    kind: type[RowT],
    name: str,
    query: SubjectsQuery,
    summaries: Callable[[Session, Sequence[RowT]], Sequence[SummaryT]],
) -> Page[SummaryT]:
    """Return a page of subjects.

    Args:
        kind: Their class.
        name: The name of the list.
        query: Its filters, order and page.
        summaries: Returns them as the API lists them.

    Raises:
        UnprocessableError: If the cursor does not fit.
    """
    statement = select(kind)
    if query.target is not None:
        statement = statement.where(contains(query.target, kind.target))
    if query.owner is not None:
        statement = statement.where(kind.owner == query.owner)
    if query.text is not None:
        statement = statement.where(contains(query.text, kind.name, kind.target))
    by = {
        "created_at": CursorKey(kind.created_at, datetime),
        "name": CursorKey(kind.name, str),
    }
    keys = [by[query.sort.removeprefix("-")], CursorKey(kind.id, UUID)]
    list_page = page(session, statement, keys, query.asked(name, query.sort))
    rows = [row for (row,) in list_page.rows]
    return Page[Any](items=tuple(summaries(session, rows)), next_cursor=list_page.next_cursor)


def groups_of(session: Session, rows: Sequence[SubjectColumns]) -> dict[UUID, GroupRow]:
    """Return the groups of subjects by their ids."""
    ids = [row.group_id for row in rows]
    groups = session.scalars(select(GroupRow).where(GroupRow.id.in_(ids)))
    return {group.id: group for group in groups}


def summary(row: SubjectColumns, group: GroupRow, jobs: Sequence[JobRow]) -> SubjectSummary:
    """Return what the API shows of each subject.

    Args:
        jobs: Its jobs.
    """
    return SubjectSummary(
        id=row.id,
        name=row.name,
        target=row.target,
        owner=row.owner,
        created_at=row.created_at,
        group_id=row.group_id,
        state=state_of([job.state for job in jobs]),
        max_trials=group.max_trials,
        num_measured=sum(job.num_measured for job in jobs),
    )
