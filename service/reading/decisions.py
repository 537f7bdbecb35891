"""The decisions of a sketch's trials, and the importance of each decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from service.reading.thinning import even
from service.store.trials.trial_columns import Floats, Ints, TrialColumns
from service.wire.readings import Decision, Decisions

MAX_ROWS = 2000
FASTEST = 500
"""Number of the fastest trials that are always shown."""
_LEAST_RIGHT = 8
"""Minimum number of correct trials for an importance."""
NONE = Decisions(
    sketch=None,
    sketches=(),
    decisions=(),
    rows=(),
    number=(),
    best_secs=(),
    num_trials=0,
    is_sampled=False,
)
"""The decisions of a job without trials."""


def sketches_of(columns: TrialColumns) -> tuple[str, ...]:
    """Return the sketches of a job, those with most trials first."""
    counts = np.bincount(columns.sketch, minlength=len(columns.sketches))
    order = np.argsort(-counts, kind="stable").tolist()
    return tuple(columns.sketches[i] for i in order if counts[i])


def chosen(columns: TrialColumns, sketch: str) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return the indices of the trials to show, and a mask of the evenly spaced ones."""
    places = np.flatnonzero(columns.sketch == columns.sketches.index(sketch))
    if len(places) <= MAX_ROWS:
        return places, np.ones(len(places), np.bool_)
    spread = places[even(len(places), MAX_ROWS - FASTEST)]
    right = places[columns.is_right[places]]
    fastest = right[np.argsort(columns.best_secs[right], kind="stable")[:FASTEST]]
    shown = np.union1d(spread, fastest)
    return shown, np.isin(shown, spread)


def decisions(
    columns: TrialColumns,
    sketch: str,
    sketches: Sequence[str],
    labels: Sequence[str],
    decided: Mapping[int, Sequence[int]],
) -> Decisions:
    """Return the decisions of a sketch's trials.

    Args:
        labels: The name of each decided number.
        decided: The decided numbers of the trials from `chosen`, by the trials' numbers. A trial
            with another count is omitted: an imported job may give two sketches one name.
    """
    places, is_even = chosen(columns, sketch)
    fits = np.array([len(decided[n]) == len(labels) for n in columns.number[places].tolist()])
    places, is_even = places[fits], is_even[fits]
    best = columns.best_secs[places]
    numbers = columns.number[places].tolist()
    table = np.array([decided[n] for n in numbers], np.float64).reshape(len(numbers), len(labels))
    return Decisions(
        sketch=sketch,
        sketches=tuple(sketches),
        decisions=tuple(
            _decision(label, table[:, i], table[is_even, i], best[is_even])
            for i, label in enumerate(labels)
        ),
        rows=tuple(map(tuple, table.tolist())),
        number=tuple(numbers),
        best_secs=none_for_nan(best),
        num_trials=int((columns.sketch == columns.sketches.index(sketch)).sum()),
        is_sampled=not is_even.all(),
    )


def none_for_nan(values: Floats) -> tuple[float | None, ...]:
    """Return numbers for JSON; NaN becomes null."""
    numbers: list[float | None] = values.astype(object).tolist()
    for index in np.flatnonzero(np.isnan(values)).tolist():
        numbers[index] = None
    return tuple(numbers)


def _decision(label: str, values: Floats, even_values: Floats, even_secs: Floats) -> Decision:
    right = ~np.isnan(even_secs)
    return Decision(
        name=label,
        values=tuple(np.unique(values).tolist()),
        importance=importance(even_values[right], np.log(even_secs[right])),
    )


def importance(values: Floats, logs: Floats) -> float | None:
    """Return the share of the variance of `logs` that `values` alone explain.

    It is epsilon squared (Kelley, 1935): unlike eta squared it does not grow with the number of
    different values by chance alone. The result is None for too few trials.
    """
    num = len(values)
    _, group = np.unique(values, return_inverse=True)
    num_groups = int(group.max()) + 1 if num else 0
    if num < _LEAST_RIGHT or num - num_groups < 1:
        return None
    total = float(((logs - logs.mean()) ** 2).sum())
    if total == 0 or num_groups == 1:
        return 0.0
    means = np.bincount(group, logs) / np.bincount(group)
    within = float(((logs - means[group]) ** 2).sum())
    return max(0.0, 1 - (within / (num - num_groups)) / (total / (num - 1)))
