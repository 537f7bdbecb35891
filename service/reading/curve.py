"""The curve of a job: its best time so far."""

from __future__ import annotations

import numpy as np

from service.reading.thinning import even
from service.store.trials.trial_columns import Floats, TrialColumns
from service.wire.readings import Curve


def curve(columns: TrialColumns, started_secs: float, points: int) -> Curve:
    """Return the points at which the best time improved, and the last; at most `points`."""
    steps = columns.improvements()
    if not len(steps):
        return Curve(number=(), secs=(), best_secs=())
    steps = steps[even(len(steps), max(points - 1, 1))]
    last = len(columns) - 1
    indices = steps if steps[-1] == last else np.append(steps, last)
    best = columns.best_secs[steps]
    best_secs = np.append(best, best[-1])[: len(indices)]
    return Curve(
        number=columns.number[indices].tolist(),
        secs=since(columns, started_secs)[indices].tolist(),
        best_secs=best_secs.tolist(),
    )


def since(columns: TrialColumns, started_secs: float) -> Floats:
    """Return when all trials up to each one were measured, in seconds since the job began."""
    secs: Floats = np.maximum.accumulate(columns.at - started_secs)
    return np.maximum(secs, 0.0).round(6)
