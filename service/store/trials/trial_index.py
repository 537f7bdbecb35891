"""Trials without their traces, one by one: read from one index, not from the table.

A trace is kilobytes; all else that plots need of a trial is in the index `ix_trials_narrow`: a
hundred thousand take a quarter of a second. Most trials of such a job are packed, though
(`service.store.trials.trial_chunks`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import SQLColumnExpression, String, select, type_coerce
from sqlalchemy.orm import Session

from service.store.trials.trial_columns import SOURCES
from service.store.trials.trials import TrialRow

ValueT = TypeVar("ValueT")
_ROWS = 256
"""Rows at a time: with thousands of live rows, the garbage collector takes as long as the read."""

# Texts, not yet an `ErrorKind` and a `datetime`: there are many.
_COLUMNS = [
    type_coerce(column, String) if name in ("error", "created_at") else column
    for name, column in ((name, getattr(TrialRow, name)) for name in SOURCES)
]


def between(
    session: Session, job_id: UUID, after: int, before: int | None = None
) -> Iterator[Sequence[Sequence[Any]]]:
    """Yield the narrow columns of a job's trials whose number lies between two, by number.

    They come some rows at a time: all at once would be a million objects.
    """
    query = select(*_COLUMNS).where(TrialRow.job_id == job_id, TrialRow.number > after)
    if before is not None:
        query = query.where(TrialRow.number < before)
    cursor = session.connection().execute(query.order_by(TrialRow.number)).cursor
    assert cursor is not None
    # The driver's own tuples: rows of SQLAlchemy would take as long again.
    while rows := cursor.fetchmany(_ROWS):
        yield rows


def messages(session: Session, job_id: UUID, numbers: Sequence[int]) -> dict[int, str]:
    """Return the error messages of these trials of a job, by number."""
    return _by_number(session, TrialRow.message, job_id, numbers)


def decisions(session: Session, job_id: UUID, numbers: Sequence[int]) -> dict[int, list[int]]:
    """Return the numbers that these trials of a job decided, by number."""
    return _by_number(session, TrialRow.decisions, job_id, numbers)


def _by_number(
    session: Session, column: SQLColumnExpression[ValueT], job_id: UUID, numbers: Sequence[int]
) -> dict[int, ValueT]:
    query = select(TrialRow.number, column).where(
        TrialRow.job_id == job_id, TrialRow.number.in_(numbers)
    )
    return {row[0]: row[1] for row in session.execute(query)}
