"""The trials of a job as columns in memory, kept while somebody looks at them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt
from sqlalchemy.orm import Session

from service.store import narrow
from service.store.jobs import JobRow

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

OK = "ok"
"""The outcome of a trial that ran and was right; the others are kinds of errors."""
MAX_KEPT = 400_000
"""So many trials are kept in memory, of all jobs together: about 40 MB."""


@dataclass(frozen=True)
class JobColumns:
    """The trials of a job by number; what is not known is NaN.

    `sketch` and `outcome` are places in `sketches` and `outcomes`, whose first is `ok`; `at` is
    when the trial was stored, in seconds since the epoch.
    """

    number: Ints
    round: Ints
    sketch: Ints
    outcome: Ints
    best_secs: Floats
    predicted: Floats
    build_secs: Floats
    check_secs: Floats
    time_secs: Floats
    at: Floats
    sketches: tuple[str, ...]
    outcomes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, places: slice) -> JobColumns:
        """Return the trials at these places."""
        return replace(self, **{name: value[places] for name, value in self.arrays()})

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """Yield the columns by name."""
        return ((n, value) for n, value in vars(self).items() if isinstance(value, np.ndarray))

    @property
    def is_right(self) -> npt.NDArray[np.bool_]:
        """Which trials ran and were right."""
        right: npt.NDArray[np.bool_] = self.outcome == 0
        return right

    def improvements(self) -> Ints:
        """Return the places of the trials that were faster than all before them."""
        secs = np.where(np.isnan(self.best_secs), np.inf, self.best_secs)
        before = np.concatenate([[np.inf], np.minimum.accumulate(secs)[:-1]]) if len(secs) else secs
        return np.flatnonzero(secs < before)


class ColumnsCache:
    """Keeps the columns of the jobs that were read last; safe to use from several threads.

    A trial never changes, and a job counts its trials in the transaction that adds them: columns
    of so many trials are those of the job, and fewer lack only what came since.
    """

    def __init__(self, max_kept: int = MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._kept: OrderedDict[UUID, JobColumns] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session: Session, job: JobRow) -> JobColumns:
        """Return the columns of a job as the session sees it."""
        with self._lock:
            known = self._kept.get(job.id)
        if known is None or len(known) != job.num_measured:
            known = _read(session, job, known)
            self._keep(job.id, known)
        return known

    def _keep(self, job_id: UUID, columns: JobColumns) -> None:
        with self._lock:
            self._kept[job_id] = columns
            self._kept.move_to_end(job_id)
            total = sum(map(len, self._kept.values()))
            while len(self._kept) > 1 and total > self._max_kept:
                _, dropped = self._kept.popitem(last=False)
                total -= len(dropped)


def _read(session: Session, job: JobRow, known: JobColumns | None) -> JobColumns:
    if known is not None and len(known) and len(known) < job.num_measured:
        grown = columns_of(narrow.after(session, job.id, int(known.number[-1])), known)
        # Numbers arrive out of order: a late one lies before the last that is known.
        if len(grown) == job.num_measured:
            return grown
    return columns_of(narrow.after(session, job.id))


def columns_of(
    chunks: Iterable[Sequence[Sequence[Any]]], known: JobColumns | None = None
) -> JobColumns:
    """Return the columns of rows of `narrow.after`, behind those that are known."""
    sketches = {name: i for i, name in enumerate(known.sketches if known else ())}
    outcomes = {name: i for i, name in enumerate(known.outcomes if known else (OK,))}
    first = _arrays((), sketches, outcomes) if known is None else dict(known.arrays())
    parts = [first, *(_arrays(rows, sketches, outcomes) for rows in chunks)]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in first}
    return JobColumns(**joined, sketches=tuple(sketches), outcomes=tuple(outcomes))


def _arrays(
    rows: Sequence[Sequence[Any]], sketches: dict[str, int], outcomes: dict[str, int]
) -> dict[str, npt.NDArray[Any]]:
    fields = list(zip(*rows, strict=True)) if rows else [()] * 10
    number, rounds, sketch, error, best, predicted, build, check, time, at = fields
    return {
        "number": np.array(number, np.int64),
        "round": np.array(rounds, np.int64),
        "sketch": _places(sketch, sketches),
        "outcome": _places([kind or OK for kind in error], outcomes),
        "best_secs": np.array(best, np.float64),
        "predicted": np.array(predicted, np.float64),
        "build_secs": np.array(build, np.float64),
        "check_secs": np.array(check, np.float64),
        "time_secs": np.array(time, np.float64),
        "at": _epoch_secs(at),
    }


def _places(names: Sequence[str], known: dict[str, int]) -> Ints:
    """Return the place of each name in `known`, which grows by the new ones."""
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def _epoch_secs(moments: Sequence[str | datetime]) -> Floats:
    """Turn moments as the driver gives them, text of UTC from SQLite, into seconds."""
    if moments and isinstance(moments[0], datetime):
        return np.array([m.timestamp() for m in moments if isinstance(m, datetime)], np.float64)
    return np.array(moments, "datetime64[us]").astype(np.int64) / 1e6
