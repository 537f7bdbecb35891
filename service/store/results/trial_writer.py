"""Store the trials of many jobs in common transactions, from a thread of its own.

One transaction writes at a time, so each should hold much. Trials that arrive while one is written,
or soon after it began, wait for the next. A search goes on meanwhile: it learns of an error at its
next trials, and `flush` waits for all before a job ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from threading import Condition, Thread
from time import monotonic
from uuid import UUID

from sqlalchemy.exc import IntegrityError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from compiler.bounded_cache import BoundedCache
from service.store.database.database import Database
from service.store.database.error import DatabaseLostError
from service.store.results.add_trials import NewTrials, add_all
from service.store.trials.sketches import SketchKey

_INTERVAL_SECS = 0.1
"""Shortest time between two transactions: the delay of a trial against the cost of each. Chosen."""
_MAX_TOGETHER = 256
"""Most sets of trials in a transaction: other writers wait for its end. Chosen."""
MAX_WAITING = 64
"""Sets of trials of a job that wait: with more, its search waits, too. Four rounds; chosen."""
_MAX_LABELLED = 65536
"""Sketches that are remembered as stored. Chosen."""
_OF_THE_DATABASE = (DatabaseLostError, InterfaceError, OperationalError, OSError, PoolTimeoutError)
"""Errors that each transaction would have."""


class TrialWriter:
    """Stores trials; safe to use from several threads.

    Its thread runs while there are trials to store.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = Condition()  # of all below
        self._waiting: list[NewTrials] = []
        self._num_pending: Counter[UUID] = Counter()
        self._errors: dict[UUID, Exception] = {}
        self._num_flushing = 0
        self._thread: Thread | None = None
        self._labelled: BoundedCache[SketchKey, bool] = BoundedCache(_MAX_LABELLED)

    def put(self, trials: NewTrials) -> None:
        """Store trials soon.

        Raises:
            Exception: The first error of earlier trials of the job: that of the transaction, or one
                that `add_all` returned. These trials are not stored then.
        """
        job_id = trials.job_id
        with self._changed:
            self._changed.wait_for(lambda: self._num_pending[job_id] < MAX_WAITING)
            self._raise_error(job_id)
            self._num_pending[job_id] += 1
            self._waiting.append(trials)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="trial writer", daemon=True)
                self._thread.start()

    def flush(self, job_id: UUID) -> None:
        """Wait until the trials of a job are stored.

        Raises:
            Exception: See `put`.
        """
        with self._changed:
            self._num_flushing += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._num_pending[job_id])
            self._num_flushing -= 1
            self._raise_error(job_id)

    def _raise_error(self, job_id: UUID) -> None:
        if (error := self._errors.pop(job_id, None)) is not None:
            raise error

    def _run(self) -> None:
        while True:
            begun_at = monotonic()
            with self._changed:
                together = self._waiting[:_MAX_TOGETHER]
                del self._waiting[:_MAX_TOGETHER]
                if not together:
                    self._thread = None
                    return
            errors = self._write(together)
            with self._changed:
                for trials, error in zip(together, errors, strict=True):
                    self._note(trials.job_id, error)
                self._changed.notify_all()
                pause_secs = begun_at + _INTERVAL_SECS - monotonic()
                self._changed.wait_for(lambda: self._num_flushing > 0, max(0.0, pause_secs))

    def _note(self, job_id: UUID, error: Exception | None) -> None:
        self._num_pending[job_id] -= 1
        if not self._num_pending[job_id]:
            del self._num_pending[job_id]
        if error is not None:
            self._errors.setdefault(job_id, error)

    def _write(
        self, together: Sequence[NewTrials], *, looks_for_duplicates: bool = False
    ) -> list[Exception | None]:
        """Store trials in one transaction; if one set makes it fail, each in its own."""
        try:
            with self._database.write() as session:
                errors = add_all(
                    session,
                    together,
                    self._labelled,
                    looks_for_duplicates=looks_for_duplicates,
                )
        except Exception as error:
            if isinstance(error, IntegrityError) and not looks_for_duplicates:
                return self._write(together, looks_for_duplicates=True)
            if len(together) == 1 or isinstance(error, _OF_THE_DATABASE):
                return [error] * len(together)
            return [self._write([trials], looks_for_duplicates=True)[0] for trials in together]
        for trials, refusal in zip(together, errors, strict=True):
            if refusal is None:
                for key in trials.sketch_keys:
                    self._labelled.put(key, True)
        return errors
