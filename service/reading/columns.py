"""The columns of jobs in memory, kept while somebody looks at them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from uuid import UUID

from sqlalchemy.orm import Session

from service.store.jobs.jobs import JobRow
from service.store.trials import trial_chunks
from service.store.trials.trial_columns import TrialColumns, joined

MAX_KEPT = 400_000
"""So many trials are kept in memory, of all jobs together: about 40 MB."""


class ColumnsCache:
    """Keeps the columns of the jobs that were read last; safe to use from several threads.

    A trial never changes, and a job counts its trials in the transaction that adds them: columns
    of so many trials are those of the job, and fewer lack only what came since.
    """

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._kept: OrderedDict[UUID, TrialColumns] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session: Session, job: JobRow) -> TrialColumns:
        """Return the columns of a job as the session sees it."""
        with self._lock:
            known = self._kept.get(job.id)
        if known is None or len(known) != job.num_measured:
            known = _read(session, job, known)
            self._keep(job.id, known)
        return known

    def _keep(self, job_id: UUID, columns: TrialColumns) -> None:
        with self._lock:
            self._kept[job_id] = columns
            self._kept.move_to_end(job_id)
            total = sum(map(len, self._kept.values()))
            while len(self._kept) > 1 and total > self._max_kept:
                _, dropped = self._kept.popitem(last=False)
                total -= len(dropped)


def _read(session: Session, job: JobRow, known: TrialColumns | None) -> TrialColumns:
    if known is not None and len(known) and len(known) < job.num_measured:
        since = trial_chunks.after(session, job.id, int(known.number[-1]))
        grown = joined([known, *since])
        # Numbers arrive out of order: a late one lies before the last that is known.
        if len(grown) == job.num_measured:
            return grown
    return joined(trial_chunks.after(session, job.id))
