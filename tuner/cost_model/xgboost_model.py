"""A cost model of gradient-boosted trees that ranks the candidates of a task.

Settings follow from what was measured: at tens of trials a second training is the bottleneck, so
there are few bins and few, sampled rows and columns a tree, on one thread. Squared error on labels
that are relative to the task's best ranks held-out candidates better than XGBoost's ranking
objectives do with the tens to hundreds of samples that a job has (pairwise accuracy 0.89 against
0.78 at 192 samples of a convolution).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xgboost

from tuner.cost_model import stored_model
from tuner.cost_model.cost_model import CostModelError, Samples, Scores
from tuner.space.features import NUM_FEATURES, FeatureMatrix

MIN_SAMPLES = 8
"""Fewer say nothing about hundreds of columns."""
NUM_MEMBERS = 3
"""Boosted on their own, from seeds of their own: where they differ, the model is not sure."""
NUM_TREES = 40
"""Of a member."""

_PARAMETERS: dict[str, Any] = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_bin": 32,
    "max_depth": 5,
    "eta": 0.2,
    "min_child_weight": 1.0,
    "subsample": 0.8,
    "colsample_bytree": 0.4,
    "nthread": 1,
    "verbosity": 0,
}


class XGBoostModel:
    """Scores candidates by boosted trees; see `CostModel`.

    A sample's label is its task's best time over its own, so 1 for the best and 0 for a failure.

    Args:
        base: A stored model (`to_bytes`) to start from: it predicts as that does until samples
            come, and boosts on from it.

    Raises:
        CostModelError: If the base is no such model, damaged, or of other versions.
    """

    def __init__(self, seed: int = 0, base: bytes | None = None) -> None:
        self._seed = seed % (1 << 31)
        self._samples: list[Samples] = []
        self._base = [] if base is None else stored_model.decode(base)
        self._members = self._base
        self._is_stale = False

    @property
    def is_trained(self) -> bool:
        """Whether predictions mean anything: enough samples, or a base."""
        return bool(self._base) or self._num_samples() >= MIN_SAMPLES

    def update(self, samples: Samples) -> None:
        """Take in samples; the next prediction trains on all of them."""
        _check_columns(samples.features)
        if len(samples.run_secs):
            self._samples.append(samples)
            self._is_stale = True

    def predict(self, features: FeatureMatrix) -> Scores:
        """Return a score for each row; higher is faster."""
        scores: Scores = self._opinions(features).mean(axis=0)
        return scores

    def uncertainty(self, features: FeatureMatrix) -> Scores:
        """Return the standard deviation of what the members say of each row."""
        spread: Scores = self._opinions(features).std(axis=0)
        return spread

    def to_bytes(self) -> bytes:
        """Return the trained model, without its samples, as `XGBoostModel(base=...)` reads it.

        Raises:
            CostModelError: If the model is not trained.
        """
        members = self._trained()
        if not members:
            raise CostModelError("a cost model without training has nothing to store")
        return stored_model.encode(members)

    def _num_samples(self) -> int:
        return sum(len(s.run_secs) for s in self._samples)

    def _opinions(self, features: FeatureMatrix) -> Scores:
        """Return the scores of each member, one row a member."""
        _check_columns(features)
        members = self._trained()
        if not members or not len(features):
            return np.zeros((1, len(features)))
        return np.array([member.inplace_predict(features) for member in members], np.float64)

    def _trained(self) -> list[xgboost.Booster]:
        if self._is_stale and self._num_samples() >= MIN_SAMPLES:
            self._members = self._fit()
            self._is_stale = False
        return self._members

    def _fit(self) -> list[xgboost.Booster]:
        rows = np.vstack([s.features for s in self._samples])
        best: dict[str, float] = {}
        for samples in self._samples:
            fastest = float(samples.run_secs.min())
            best[samples.task_key] = min(best.get(samples.task_key, np.inf), fastest)
        labels = np.concatenate([_labels(s, best[s.task_key]) for s in self._samples])
        weights = np.concatenate([_weights(s) for s in self._samples])
        matrix = xgboost.QuantileDMatrix(
            rows, labels, weight=weights, max_bin=_PARAMETERS["max_bin"], nthread=1
        )
        return [
            xgboost.train(
                {**_PARAMETERS, "seed": self._seed + number},
                matrix,
                NUM_TREES,
                xgb_model=self._base[number] if self._base else None,
            )
            for number in range(len(self._base) or NUM_MEMBERS)
        ]


def _labels(samples: Samples, best_secs: float) -> Scores:
    if not np.isfinite(best_secs):
        return np.zeros(len(samples.run_secs))
    labels: Scores = best_secs / samples.run_secs
    return labels


def _weights(samples: Samples) -> Scores:
    return np.ones(len(samples.run_secs)) if samples.weights is None else samples.weights


def _check_columns(features: FeatureMatrix) -> None:
    if features.ndim != 2 or features.shape[1] != NUM_FEATURES:
        raise ValueError(f"expected {NUM_FEATURES} columns of features, not shape {features.shape}")
