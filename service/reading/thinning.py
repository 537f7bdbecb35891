"""Thinning: which trials a plot keeps where there are more than it can show."""

from __future__ import annotations

import numpy as np

from service.store.trials.trial_columns import Ints, TrialColumns


def even(num: int, wanted: int) -> Ints:
    """Return at most `wanted` places of `num`, evenly spread, the first and the last among them."""
    if num <= wanted:
        return np.arange(num)
    if wanted == 1:
        return np.array([num - 1])
    return np.unique(np.linspace(0, num - 1, wanted).round().astype(np.int64))


def thin(columns: TrialColumns, points: int) -> Ints:
    """Return the places of at most `points` trials: what stands out, and an even choice else.

    What stands out are improvements, the first of each outcome, the first trial and the last.
    """
    num = len(columns)
    if num <= points:
        return np.arange(num)
    _, first = np.unique(columns.outcome, return_index=True)
    kept = np.unique(np.concatenate([[0, num - 1], first, columns.improvements()]))
    if len(kept) >= points:
        return kept[even(len(kept), points)]
    others = np.setdiff1d(np.arange(num), kept, assume_unique=True)
    return np.sort(np.concatenate([kept, others[even(len(others), points - len(kept))]]))
