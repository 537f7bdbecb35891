"""The trials of a job as columns in memory, for plots and counts.

`TrialColumns` is the one list of what is kept of a trial besides its trace: the index that holds it
(`ix_trials_narrow`), the query that reads it (`trial_index`) and its packed form (`trial_chunks`)
follow from the fields declared here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, TypeAlias, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

OK = "ok"
"""The outcome of a correct trial; the others are kinds of errors."""


@dataclass(frozen=True)
class StoredAs:
    """How a column is stored: its NumPy type when packed, and its column of the table `trials`."""

    packed: str
    source: str | None = None  # of the same name


@dataclass(frozen=True)
class TrialColumns:
    """Trials of a job by number; an unknown value is NaN.

    `sketch` and `outcome` are indices into `sketches` and `outcomes`; the first outcome is `ok`.
    `at` is when the trial was stored, in seconds since the epoch.
    """

    number: Annotated[Ints, StoredAs("<i4")]
    round: Annotated[Ints, StoredAs("<i4")]
    sketch: Annotated[Ints, StoredAs("<u2")]
    outcome: Annotated[Ints, StoredAs("<u2", source="error")]
    best_secs: Annotated[Floats, StoredAs("<f8")]
    predicted: Annotated[Floats, StoredAs("<f8")]
    build_secs: Annotated[Floats, StoredAs("<f8")]
    check_secs: Annotated[Floats, StoredAs("<f8")]
    time_secs: Annotated[Floats, StoredAs("<f8")]
    at: Annotated[Floats, StoredAs("<f8", source="created_at")]
    sketches: tuple[str, ...]
    outcomes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, places: slice) -> TrialColumns:
        """Return the trials of a slice."""
        return replace(self, **{name: value[places] for name, value in self.arrays()})

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """Yield the columns by name."""
        return ((n, value) for n, value in vars(self).items() if isinstance(value, np.ndarray))

    @property
    def is_right(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the correct trials."""
        right: npt.NDArray[np.bool_] = self.outcome == 0
        return right

    def improvements(self) -> Ints:
        """Return the indices of the trials that were faster than all before them."""
        secs = np.where(np.isnan(self.best_secs), np.inf, self.best_secs)
        before = np.concatenate([[np.inf], np.minimum.accumulate(secs)[:-1]]) if len(secs) else secs
        return np.flatnonzero(secs < before)


_STORED_AS: dict[str, StoredAs] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(TrialColumns, include_extras=True).items()
    if get_origin(hint) is Annotated
}

PACKED = np.dtype([(name, stored_as.packed) for name, stored_as in _STORED_AS.items()])
"""The type of a packed trial; stored chunks use it, so a change needs a migration."""

SOURCES = tuple(stored_as.source or name for name, stored_as in _STORED_AS.items())
"""The columns of the table `trials` that they come from, in their order."""


def of_rows(rows: Sequence[Sequence[Any]]) -> TrialColumns:
    """Return the columns of rows of `service.store.trials.trial_index`."""
    values = zip(*rows, strict=True) if rows else [()] * len(_STORED_AS)
    by_name = dict(zip(_STORED_AS, values, strict=True))
    sketches: dict[str, int] = {}
    outcomes = {OK: 0}
    arrays: dict[str, Any] = {
        "sketch": _indices(by_name.pop("sketch"), sketches),
        "outcome": _indices([kind or OK for kind in by_name.pop("outcome")], outcomes),
        "at": _epoch_secs(by_name.pop("at")),
    }
    arrays |= {name: np.array(column, in_memory(name)) for name, column in by_name.items()}
    return TrialColumns(**arrays, sketches=tuple(sketches), outcomes=tuple(outcomes))


def in_memory(name: str) -> type[np.float64 | np.int64]:
    """Return the type of a column in memory: integers are packed into fewer bytes."""
    return np.float64 if PACKED[name].kind == "f" else np.int64


def joined(parts: Iterable[TrialColumns]) -> TrialColumns:
    """Return the columns of several, one behind the other."""
    sketches: dict[str, int] = {}
    outcomes = {OK: 0}
    named = [
        replace(
            columns,
            sketch=_renamed(columns.sketch, columns.sketches, sketches),
            outcome=_renamed(columns.outcome, columns.outcomes, outcomes),
        )
        for columns in (of_rows(()), *parts)
    ]
    arrays = [dict(columns.arrays()) for columns in named]
    concatenated = {
        name: np.concatenate([column_arrays[name] for column_arrays in arrays])
        for name in arrays[0]
    }
    return TrialColumns(**concatenated, sketches=tuple(sketches), outcomes=tuple(outcomes))


def _renamed(indices: Ints, names: Sequence[str], index_of_name: dict[str, int]) -> Ints:
    """Return indices into `names` as indices of `index_of_name`, which grows by the new names."""
    return _indices(names, index_of_name)[indices]


def _indices(names: Sequence[str], index_of_name: dict[str, int]) -> Ints:
    """Return the index of each name in `index_of_name`, which grows by the new ones."""
    return np.array(
        [index_of_name.setdefault(name, len(index_of_name)) for name in names], np.int64
    )


def _epoch_secs(moments: Sequence[str | datetime]) -> Floats:
    """Convert timestamps of the driver, which are UTC text from SQLite, into seconds."""
    if moments and isinstance(moments[0], datetime):
        return np.array([m.timestamp() for m in moments if isinstance(m, datetime)], np.float64)
    return np.array(moments, "datetime64[us]").astype(np.int64) / 1e6
