"""The quality of the cost model in a job: how well its scores ordered each round."""

from __future__ import annotations

import numpy as np

from service.store.trials.trial_columns import Floats, Ints, TrialColumns
from service.wire.readings import ModelValue

LEAST_RANKED = 4
"""Minimum number of scored trials of a round, so that their order is significant."""


def model_value(columns: TrialColumns) -> ModelValue:
    """Return the quality of the scores that trials had before measurement, over all rounds.

    Rounds with equal scores or equal times have no order and do not count.
    """
    scored = ~np.isnan(columns.predicted)
    _, group = np.unique(columns.round[scored], return_inverse=True)
    scores = columns.predicted[scored]
    speeds = -np.where(np.isnan(columns.best_secs), np.inf, columns.best_secs)[scored]
    size = np.bincount(group)
    score_place, score_rank = ranked(group, scores)
    speed_place, speed_rank = ranked(group, speeds)
    a, b = score_rank - (size[group] - 1) / 2, speed_rank - (size[group] - 1) / 2
    spread = np.bincount(group, a * a) * np.bincount(group, b * b)
    judged = (size >= LEAST_RANKED) & (spread > 0)
    if not judged.any():
        return ModelValue(rank_correlation=None, top_quarter=None, num_trials=0, num_rounds=0)
    correlation = np.bincount(group, a * b)[judged] / np.sqrt(spread[judged])
    quarter = np.maximum(size // 4, 1)
    upper = (size - quarter)[group]
    both = (score_place >= upper) & (speed_place >= upper)
    hits = np.bincount(group, both)[judged] / quarter[judged]
    return ModelValue(
        rank_correlation=float(np.average(correlation, weights=size[judged])),
        top_quarter=float(np.average(hits, weights=size[judged])),
        num_trials=int(size[judged].sum()),
        num_rounds=int(judged.sum()),
    )


def ranked(group: Ints, values: Floats) -> tuple[Ints, Floats]:
    """Return the position of each value in its group, from 0, the smallest first, and its rank.

    Equal values have different positions, and the mean of these as their rank.
    """
    order = np.lexsort((values, group))
    sorted_group, sorted_values = group[order], values[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(sorted_group) != 0) | (sorted_values[1:] != sorted_values[:-1])
    starts = np.searchsorted(sorted_group, np.arange(len(np.bincount(group))))
    sorted_places = np.arange(len(order)) - starts[sorted_group]
    tie = np.cumsum(is_new) - 1
    places, ranks = np.empty_like(order), np.empty(len(order))
    places[order] = sorted_places
    ranks[order] = (np.bincount(tie, sorted_places) / np.bincount(tie))[tie]
    return places, ranks
