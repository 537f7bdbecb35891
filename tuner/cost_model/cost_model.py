"""The contract of cost models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tuner.space.search_space import FeatureMatrix

Scores = npt.NDArray[np.float64]


class CostModelError(ValueError):
    """A stored cost model can't be used: it is damaged, or its versions are others."""


@dataclass(frozen=True)
class Samples:
    """Measured candidates of one task: a row of features and a time in seconds for each.

    The time of a failure is infinite. `weights` says how much each row counts in training, 1 if
    it is not given.
    """

    task_key: str
    features: FeatureMatrix
    run_secs: Scores
    weights: Scores | None = None

    def __post_init__(self) -> None:
        """Hold the rows together."""
        if len(self.features) != len(self.run_secs):
            raise ValueError(
                f"{len(self.features)} rows of features for {len(self.run_secs)} run times"
            )
        if self.weights is not None and len(self.weights) != len(self.run_secs):
            raise ValueError(f"{len(self.weights)} weights for {len(self.run_secs)} run times")


class CostModel(Protocol):
    """Predicts which candidates of a task are faster than others.

    Two models with one seed and one base trained on the same samples in the same order, in
    however many calls, predict the same.
    """

    @property
    def is_trained(self) -> bool:
        """Whether predictions mean anything yet."""
        ...

    def update(self, samples: Samples) -> None:
        """Take in samples; training may wait until a prediction is wanted."""
        ...

    def predict(self, features: FeatureMatrix) -> Scores:
        """Return a score for each row: higher is faster, comparable within one task only.

        All scores are 0 as long as the model is not trained.
        """
        ...

    def uncertainty(self, features: FeatureMatrix) -> Scores:
        """Return how far each row's score may be off, in the unit of `predict`; never negative.

        All are 0 as long as the model is not trained. It is a guess, good for ranking candidates
        by how much there is to learn from them.
        """
        ...

    def to_bytes(self) -> bytes:
        """Return the trained model, without its samples, for another process to load."""
        ...
