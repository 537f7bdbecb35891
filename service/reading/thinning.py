"""Thinning: choose the trials of a plot if there are too many."""

from __future__ import annotations

import numpy as np

from service.store.trials.trial_columns import Ints, TrialColumns


def even(num: int, max_points: int) -> Ints:
    """Return up to `max_points` of `num` indices, evenly spread, with the first and the last."""
    if num <= max_points:
        return np.arange(num)
    if max_points == 1:
        return np.array([num - 1])
    return np.unique(np.linspace(0, num - 1, max_points).round().astype(np.int64))


def thin(columns: TrialColumns, points: int) -> Ints:
    """Return the indices of at most `points` trials: prominent ones, then an even choice.

    Prominent are improvements, the first of each outcome, the first trial and the last.
    """
    num = len(columns)
    if num <= points:
        return np.arange(num)
    _, first = np.unique(columns.outcome, return_index=True)
    prominent = np.unique(np.concatenate([[0, num - 1], first, columns.improvements()]))
    if len(prominent) >= points:
        return prominent[even(len(prominent), points)]
    others = np.setdiff1d(np.arange(num), prominent, assume_unique=True)
    return np.sort(np.concatenate([prominent, others[even(len(others), points - len(prominent))]]))
