"""Synthetic samples whose order a model can learn."""

from __future__ import annotations

import numpy as np

from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.space.cpu_space import CPU_SPACE

NUM_VARIED = 64
"""Columns that differ between samples. Their number does not follow that of all features, on which
the accuracy of a model would depend.
"""


def synthetic(num: int, seed: int) -> Samples:
    """Return samples whose time depends on three columns, not linearly, with 2% of noise."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((num, CPU_SPACE.num_features), np.float32)
    rows[:, :NUM_VARIED] = rng.normal(size=(num, NUM_VARIED))
    slowness = np.abs(rows[:, 3] - 0.5) + (rows[:, 7] > 0) + 0.5 * rows[:, 7] * rows[:, 11]
    return Samples("task", rows, 1e-3 * np.exp(slowness + 0.02 * rng.normal(size=num)))


def pairwise_accuracy(model: XGBoostModel, samples: Samples) -> float:
    """Return the share of pairs that the model ranks correctly."""
    scores = model.predict(samples.features)
    faster = samples.run_secs[:, None] < samples.run_secs[None, :]
    preferred = scores[:, None] > scores[None, :]
    return float(preferred[faster].mean())
