"""The list of a job's trials: selected by the index alone, then read."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from compiler.runtime.measurement import ErrorKind
from service.common.paging import CursorKey, ListPage, page
from service.reading.lists import as_page
from service.reading.queries import TrialsQuery
from service.store.jobs import jobs
from service.store.results import finals
from service.store.trials import trials
from service.store.trials.trials import TrialRow
from service.wire.models import Page, TrialRead
from service.wire.readings import TrialOutcome


def list_trials(session: Session, job_id: UUID, query: TrialsQuery) -> Page[TrialRead]:
    """Return a page of a job's trials.

    Raises:
        ServiceNotFoundError: If there is no such job.
        UnprocessableError: If the cursor does not fit.
    """
    jobs.get(session, job_id)
    # Only columns of `ix_trials_narrow`: reading a row costs kilobytes for its trace.
    statement = select(TrialRow.number).where(
        TrialRow.job_id == job_id, TrialRow.number >= query.from_number
    )
    if query.to_number is not None:
        statement = statement.where(TrialRow.number <= query.to_number)
    if query.sketch is not None:
        statement = statement.where(TrialRow.sketch == query.sketch)
    if query.outcome:
        kinds = [ErrorKind(o.value) for o in query.outcome if o is not TrialOutcome.OK]
        is_right = TrialRow.error.is_(None) if TrialOutcome.OK in query.outcome else None
        is_such = TrialRow.error.in_(kinds)
        statement = statement.where(is_such if is_right is None else or_(is_right, is_such))
    number = CursorKey(TrialRow.number, int)
    if query.sort.removeprefix("-") == "best_secs":
        keys = [CursorKey(TrialRow.best_secs, float, is_nullable=True), number]
    else:
        keys = [number]
    list_page = page(session, statement, keys, query.asked(f"trials of {job_id}", query.sort))
    numbers = [row[0] for row in list_page.rows]
    rows = session.scalars(
        select(TrialRow).where(TrialRow.job_id == job_id, TrialRow.number.in_(numbers))
    )
    by_number = {row.number: row for row in rows}
    of_finish = finals.of_trials(session, job_id, numbers)
    shown = [(by_number[n], finals.read(of_finish.get(n))) for n in numbers]
    return as_page(ListPage(shown, list_page.next_cursor), trials.read)
