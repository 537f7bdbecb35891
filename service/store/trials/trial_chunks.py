"""Trials packed into columns, some thousands in a row: 100,000 are read in milliseconds.

The packed form repeats the values that plots and counts need; the trials themselves never change. A
complete range of numbers is packed in the transaction of a later trial of its job. Trials outside
of packed ranges are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import JSON, ForeignKey, Integer, LargeBinary, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.store.database.base import Base
from service.store.trials import trial_index
from service.store.trials.trial_columns import PACKED, TrialColumns, in_memory, joined, of_rows

SIZE = 2048
"""Number of trials in a range; each range begins at a multiple of it."""
LATE = 256
"""A range is packed this many trials later, because numbers arrive out of order."""


class PackedTrialsRow(Base):
    """The trials `first` to `first + SIZE - 1` of a job: `SIZE` records of `PACKED`."""

    __tablename__ = "packed_trials"

    job_id: Mapped[UUID] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    first: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    sketches: Mapped[list[str]] = mapped_column(JSON)
    outcomes: Mapped[list[str]] = mapped_column(JSON)
    trials: Mapped[bytes] = mapped_column(LargeBinary)


def is_due(num_before: int, num_measured: int) -> bool:
    """Return whether the new trials of a job may have completed a range."""
    return (num_measured - LATE) // SIZE > max(0, (num_before - LATE) // SIZE)


def pack(session: Session, job_id: UUID, num_measured: int) -> None:
    """Pack the complete, unpacked ranges of a job's first `num_measured` trials."""
    query = select(PackedTrialsRow.first).where(PackedTrialsRow.job_id == job_id)
    packed = set(session.scalars(query))
    for first in range(0, num_measured - SIZE + 1, SIZE):
        if first not in packed:
            columns = _one_by_one(session, job_id, first - 1, first + SIZE)
            if len(columns) == SIZE:
                session.add(_row(job_id, first, columns))


def after(session: Session, job_id: UUID, number: int = -1) -> Iterator[TrialColumns]:
    """Yield a job's trials whose numbers are greater than `number`, by number, in parts."""
    query = (
        select(PackedTrialsRow)
        .where(PackedTrialsRow.job_id == job_id, PackedTrialsRow.first > number)
        .order_by(PackedTrialsRow.first)
    )
    for row in session.scalars(query):
        if row.first > number + 1:
            yield _one_by_one(session, job_id, number, row.first)
        yield _columns(row)
        number = row.first + SIZE - 1
    yield _one_by_one(session, job_id, number)


def _one_by_one(
    session: Session, job_id: UUID, after: int, before: int | None = None
) -> TrialColumns:
    return joined(map(of_rows, trial_index.between(session, job_id, after, before)))


def _row(job_id: UUID, first: int, columns: TrialColumns) -> PackedTrialsRow:
    trials = np.empty(SIZE, PACKED)
    for name, values in columns.arrays():
        trials[name] = values
    return PackedTrialsRow(
        job_id=job_id,
        first=first,
        sketches=list(columns.sketches),
        outcomes=list(columns.outcomes),
        trials=trials.tobytes(),
    )


def _columns(row: PackedTrialsRow) -> TrialColumns:
    trials = np.frombuffer(row.trials, PACKED)
    arrays: dict[str, Any] = {
        name: trials[name].astype(in_memory(name)) for name in PACKED.names or ()
    }
    return TrialColumns(**arrays, sketches=tuple(row.sketches), outcomes=tuple(row.outcomes))
