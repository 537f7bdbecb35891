"""A cost model of gradient-boosted trees that ranks the candidates of a task.

Settings follow from what was measured: at tens of trials a second training is the bottleneck, so
there are few bins and few, sampled rows and columns a tree, on one thread. Squared error on labels
that are relative to the task's best ranks held-out candidates better than XGBoost's ranking
objectives do with the tens to hundreds of samples that a job has (pairwise accuracy 0.89 against
0.78 at 192 samples of a convolution).
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import numpy as np
import xgboost

from tuner.cost_model.cost_model import CostModelError, Samples, Scores
from tuner.space.features import NUM_FEATURES, SCHEMA_VERSION, FeatureMatrix

FORMAT = "loopwright-xgboost"
FORMAT_VERSION = 1
MIN_SAMPLES = 8
"""Fewer say nothing about hundreds of columns."""
NUM_TREES = 100

_PARAMETERS: dict[str, Any] = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_bin": 32,
    "max_depth": 5,
    "eta": 0.1,
    "min_child_weight": 1.0,
    "subsample": 0.8,
    "colsample_bytree": 0.4,
    "nthread": 1,
    "verbosity": 0,
}


class XGBoostModel:
    """Scores candidates by boosted trees; see `CostModel`.

    A sample's label is its task's best time over its own, so 1 for the best and 0 for a failure.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed % (1 << 31)
        self._samples: list[Samples] = []
        self._base: xgboost.Booster | None = None
        self._booster: xgboost.Booster | None = None
        self._is_stale = False

    @property
    def is_trained(self) -> bool:
        """Whether predictions mean anything: enough samples, or a loaded model."""
        return self._base is not None or self._num_samples() >= MIN_SAMPLES

    def update(self, samples: Samples) -> None:
        """Take in samples; the next prediction trains on all of them."""
        _check_columns(samples.features)
        if len(samples.run_secs):
            self._samples.append(samples)
            self._is_stale = True

    def predict(self, features: FeatureMatrix) -> Scores:
        """Return a score for each row; higher is faster."""
        _check_columns(features)
        booster = self._trained()
        if booster is None or not len(features):
            return np.zeros(len(features))
        scores: Scores = np.asarray(booster.inplace_predict(features), np.float64)
        return scores

    def to_bytes(self) -> bytes:
        """Return a line of JSON that says what this is, then the trees in XGBoost's UBJSON.

        Raises:
            CostModelError: If the model is not trained.
        """
        booster = self._trained()
        if booster is None:
            raise CostModelError("a cost model without training has nothing to store")
        trees = bytes(booster.save_raw("ubj"))
        header = {**_header(), "sha256": sha256(trees).hexdigest()}
        return json.dumps(header, sort_keys=True).encode() + b"\n" + trees

    @classmethod
    def from_bytes(cls, stored: bytes, seed: int = 0) -> XGBoostModel:
        """Load what `to_bytes` returned; later updates add trees to it.

        Raises:
            CostModelError: If it is no such model, or of other versions than this program's.
        """
        header, newline, trees = stored.partition(b"\n")
        try:
            found = json.loads(header) if newline else None
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise CostModelError(f"expected a stored cost model, not {stored[:16]!r}...")
        for key, wanted in _header().items():
            if found.get(key) != wanted:
                raise CostModelError(
                    f"the stored cost model has {key} {found.get(key)!r}, this program has "
                    f"{wanted!r}: train it anew"
                )
        # XGBoost trusts what it loads, so damage has to be found before.
        if found.get("sha256") != sha256(trees).hexdigest():
            raise CostModelError("the trees of the stored cost model are damaged")
        booster = xgboost.Booster({"nthread": 1})
        booster.load_model(bytearray(trees))
        model = cls(seed)
        model._base = model._booster = booster
        return model

    def _num_samples(self) -> int:
        return sum(len(s.run_secs) for s in self._samples)

    def _trained(self) -> xgboost.Booster | None:
        if self._is_stale and self._num_samples() >= MIN_SAMPLES:
            self._booster = self._fit()
            self._is_stale = False
        return self._booster

    def _fit(self) -> xgboost.Booster:
        rows = np.vstack([s.features for s in self._samples])
        best: dict[str, float] = {}
        for samples in self._samples:
            fastest = float(samples.run_secs.min())
            best[samples.task_key] = min(best.get(samples.task_key, np.inf), fastest)
        labels = np.concatenate([_labels(s, best[s.task_key]) for s in self._samples])
        matrix = xgboost.QuantileDMatrix(rows, labels, max_bin=_PARAMETERS["max_bin"], nthread=1)
        parameters = {**_PARAMETERS, "seed": self._seed}
        return xgboost.train(parameters, matrix, NUM_TREES, xgb_model=self._base)


def _labels(samples: Samples, best_secs: float) -> Scores:
    if not np.isfinite(best_secs):
        return np.zeros(len(samples.run_secs))
    labels: Scores = best_secs / samples.run_secs
    return labels


def _header() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "feature_schema": SCHEMA_VERSION,
        "num_features": NUM_FEATURES,
    }


def _check_columns(features: FeatureMatrix) -> None:
    if features.ndim != 2 or features.shape[1] != NUM_FEATURES:
        raise ValueError(f"expected {NUM_FEATURES} columns of features, not shape {features.shape}")
