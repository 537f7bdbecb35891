"""A cache of the columns of the jobs that were read last."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.orm import Session

from compiler.bounded_cache import BoundedCache
from service.store.jobs.jobs import JobRow
from service.store.trials import trial_chunks
from service.store.trials.trial_columns import TrialColumns, joined

MAX_TRIALS = 400_000
"""Cached trials of all jobs together: about 40 MB. Chosen."""


class ColumnsCache:
    """Caches the columns of the jobs that were read last; safe to use from several threads.

    A trial never changes, and a job counts its trials in the transaction that adds them. So columns
    with that number of trials are current, and others lack only newer trials.
    """

    def __init__(self, max_trials: int = MAX_TRIALS) -> None:
        self._columns: BoundedCache[UUID, TrialColumns] = BoundedCache(max_trials, size_of=len)

    def of(self, session: Session, job: JobRow) -> TrialColumns:
        """Return the columns of a job in the state that the session sees."""
        columns = self._columns.get(job.id)
        if columns is None or len(columns) != job.num_measured:
            columns = _read(session, job, columns)
            self._columns.put(job.id, columns)
        return columns


def _read(session: Session, job: JobRow, earlier: TrialColumns | None) -> TrialColumns:
    if earlier is not None and len(earlier) and len(earlier) < job.num_measured:
        since = trial_chunks.after(session, job.id, int(earlier.number[-1]))
        grown = joined([earlier, *since])
        # Trials arrive out of order: a late one has a smaller number than the last cached one.
        if len(grown) == job.num_measured:
            return grown
    return joined(trial_chunks.after(session, job.id))
