"""The trials of a job as columns in memory: what plots and counts are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

OK = "ok"
"""The outcome of a trial that ran and was right; the others are kinds of errors."""


@dataclass(frozen=True)
class TrialColumns:
    """Trials of a job by number; what is not known is NaN.

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

    def __getitem__(self, places: slice) -> TrialColumns:
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


def of_rows(rows: Sequence[Sequence[Any]]) -> TrialColumns:
    """Return the columns of rows of `service.store.trials.trial_index`."""
    fields = list(zip(*rows, strict=True)) if rows else [()] * 10
    number, rounds, sketch, error, best, predicted, build, check, time, at = fields
    sketches: dict[str, int] = {}
    outcomes = {OK: 0}
    return TrialColumns(
        number=np.array(number, np.int64),
        round=np.array(rounds, np.int64),
        sketch=_places(sketch, sketches),
        outcome=_places([kind or OK for kind in error], outcomes),
        best_secs=np.array(best, np.float64),
        predicted=np.array(predicted, np.float64),
        build_secs=np.array(build, np.float64),
        check_secs=np.array(check, np.float64),
        time_secs=np.array(time, np.float64),
        at=_epoch_secs(at),
        sketches=tuple(sketches),
        outcomes=tuple(outcomes),
    )


def joined(parts: Iterable[TrialColumns]) -> TrialColumns:
    """Return the columns of several, one behind the other."""
    sketches: dict[str, int] = {}
    outcomes = {OK: 0}
    named = [
        replace(
            part,
            sketch=_renamed(part.sketch, part.sketches, sketches),
            outcome=_renamed(part.outcome, part.outcomes, outcomes),
        )
        for part in (of_rows(()), *parts)
    ]
    arrays = [dict(part.arrays()) for part in named]
    whole = {name: np.concatenate([each[name] for each in arrays]) for name in arrays[0]}
    return TrialColumns(**whole, sketches=tuple(sketches), outcomes=tuple(outcomes))


def _renamed(places: Ints, names: Sequence[str], known: dict[str, int]) -> Ints:
    """Return the places in `known`, which grows by the new names, for those in `names`."""
    return _places(names, known)[places]


def _places(names: Sequence[str], known: dict[str, int]) -> Ints:
    """Return the place of each name in `known`, which grows by the new ones."""
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def _epoch_secs(moments: Sequence[str | datetime]) -> Floats:
    """Turn moments as the driver gives them, text of UTC from SQLite, into seconds."""
    if moments and isinstance(moments[0], datetime):
        return np.array([m.timestamp() for m in moments if isinstance(m, datetime)], np.float64)
    return np.array(moments, "datetime64[us]").astype(np.int64) / 1e6
