"""The contract of cost models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tuner.space.features import FeatureMatrix

Scores = npt.NDArray[np.float64]


class CostModelError(ValueError):
    """A stored cost model can't be used: it is damaged, or its versions are others."""


@dataclass(frozen=True)
class Samples:
    """Measured candidates of one task: a row of features and a time in seconds for each.

    The time of a failure is infinite.
    """

    task_key: str
    features: FeatureMatrix
    run_secs: Scores

    def __post_init__(self) -> None:
        """Hold the rows together."""
        if len(self.features) != len(self.run_secs):
            raise ValueError(
                f"{len(self.features)} rows of features for {len(self.run_secs)} run times"
            )


class CostModel(Protocol):
    """Predicts which candidates of a task are faster than others.

    Two models with one seed that were told the same samples in the same order, in however many
    calls, predict the same.
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

    def to_bytes(self) -> bytes:
        """Return the trained model, without its samples, for another process to load."""
        ...
