"""Select the trials of a job that meet conditions, in order; pages are cut from the result."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from service.reading.model_value import ranked
from service.reading.queries import MAX_NUMBER, SelectionQuery
from service.store.trials.trial_columns import Floats, Ints, TrialColumns


def standings(columns: TrialColumns, places: Ints) -> tuple[Floats, Floats]:
    """Return the standing of trials in their rounds: the percentile of the score, and the speed.

    The percentile is the share of the other scored trials of the round with a worse score, from 0
    to 1. The speed is a share of the fastest's, 0 for a failure. Both are NaN for a trial that has
    no score or is alone in its round. They are rounded as in the API.
    """
    score = np.full(len(columns), np.nan)
    speed = np.full(len(columns), np.nan)
    if len(places):
        rounds = columns.round[places]
        near = (columns.round >= rounds.min()) & (columns.round <= rounds.max())
        scored = np.flatnonzero(near & ~np.isnan(columns.predicted))
        _, group = np.unique(columns.round[scored], return_inverse=True)
        size = np.bincount(group)
        rank, _ = ranked(group, columns.predicted[scored])
        best = columns.best_secs[scored]
        secs = np.where(np.isnan(best), np.inf, best)
        fastest = np.full(len(size), np.inf)
        np.minimum.at(fastest, group, secs)
        share = np.where(np.isinf(fastest), 0.0, fastest)[group] / secs
        has_rivals = size[group] > 1
        score[scored[has_rivals]] = rank[has_rivals] / (size[group][has_rivals] - 1)
        speed[scored[has_rivals]] = share[has_rivals]
    return score[places].round(4), speed[places].round(4)


def selected(columns: TrialColumns, query: SelectionQuery) -> Ints:
    """Return the indices of all trials that meet the conditions of a query, in its order."""
    last = MAX_NUMBER if query.to_number is None else query.to_number
    meets = (columns.number >= query.from_number) & (columns.number <= last)
    if query.sketch is not None:
        meets &= columns.sketch == _place_of(query.sketch, columns.sketches)
    if query.outcome is not None:
        meets &= columns.outcome == _place_of(query.outcome.value, columns.outcomes)
    meets &= _within(columns.best_secs, query.from_secs, query.to_secs)
    of_score = (query.from_predicted_percentile, query.to_predicted_percentile)
    of_speed = (query.from_relative_speed, query.to_relative_speed)
    if any(end is not None for end in (*of_score, *of_speed)):
        predicted_percentile, relative_speed = standings(columns, np.arange(len(columns)))
        meets &= _within(predicted_percentile, *of_score)
        meets &= _within(relative_speed, *of_speed)
    return _ordered(columns, np.flatnonzero(meets), query.sort)


def _within(values: Floats, low: float | None, high: float | None) -> npt.NDArray[np.bool_]:
    """Return which values lie between `low` and `high`; NaN does not."""
    mask = np.ones(len(values), bool)
    if low is not None:
        mask &= values >= low
    if high is not None:
        mask &= values <= high
    return mask


def _place_of(name: str, names: tuple[str, ...]) -> int:
    return names.index(name) if name in names else -1


def _ordered(columns: TrialColumns, places: Ints, sort: str) -> Ints:
    """Return indices in an order: equal trials by number, unknown values last."""
    by = sort.removeprefix("-")
    values = getattr(columns, by)[places]
    if by in ("sketch", "outcome"):
        names = columns.sketches if by == "sketch" else columns.outcomes
        values = np.argsort(np.argsort(names))[values]
    falls = sort.startswith("-")
    return places[np.argsort(-values if falls else values, kind="stable")]
