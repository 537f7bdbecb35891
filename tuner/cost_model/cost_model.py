"""The contract of cost models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tuner.space.search_space import FeatureMatrix

Scores = npt.NDArray[np.float64]


class CostModelError(ValueError):
    """A stored cost model can't be used: it is damaged, or has other versions."""


@dataclass(frozen=True)
class Samples:
    """Measured candidates of one task: a row of features and a time in seconds for each.

    The time of a failure is infinite. `weights` are the weights of the rows in training, by default
    1. `operator` and `label` are the hash of the task's operator and the label of its target, by
    which samples are held out; empty if they are not.
    """

    task_key: str
    features: FeatureMatrix
    run_secs: Scores
    weights: Scores | None = None
    operator: str = ""
    label: str = ""

    def first(self, num: int) -> Samples:
        """Return the first `num` rows."""
        weights = None if self.weights is None else self.weights[:num]
        return replace(
            self, features=self.features[:num], run_secs=self.run_secs[:num], weights=weights
        )

    def __post_init__(self) -> None:
        """Check that all fields have the same number of rows."""
        if len(self.features) != len(self.run_secs):
            raise ValueError(
                f"{len(self.features)} rows of features for {len(self.run_secs)} run times"
            )
        if self.weights is not None and len(self.weights) != len(self.run_secs):
            raise ValueError(f"{len(self.weights)} weights for {len(self.run_secs)} run times")


class Outlook(NamedTuple):
    """What a model expects of candidates.

    Attributes:
        scores: A score of each: higher is faster, comparable within one task only.
        uncertainty: The standard deviation of each score; never negative. It is an estimate, for
            ranking candidates by how much can be learned from them.
    """

    scores: Scores
    uncertainty: Scores


class CostModel(Protocol):
    """Predicts which candidates of a task are faster than others.

    Two models with one seed and one base predict the same after training on the same samples in the
    same order, in any number of calls.
    """

    @property
    def is_trained(self) -> bool:
        """Return whether predictions are meaningful."""
        ...

    @property
    def trust(self) -> float:
        """Return how far the samples confirm what the model started from, from 0 to 1.

        It is 1 without samples, and for a model that started from nothing.
        """
        ...

    @property
    def job_share(self) -> float:
        """Return the share of the samples in a score, from 0 to 1.

        The rest is that of what the model started from; it is 1 for one that started from nothing.
        """
        ...

    def update(self, samples: Samples) -> None:
        """Add samples; training may be delayed until the next prediction."""
        ...

    def start_scores(self, features: FeatureMatrix) -> Scores:
        """Return the scores of what the model started from: a row a candidate, a column a member.

        Samples do not change them, so they are computed once for candidates that are asked about
        again. There is no column if the model started from nothing.
        """
        ...

    def outlook(self, features: FeatureMatrix, start: Scores | None = None) -> Outlook:
        """Return what is expected of each row; all zeros until the model is trained.

        Args:
            start: What `start_scores` returned for these rows, if it was kept.
        """
        ...

    def predict(self, features: FeatureMatrix) -> Scores:
        """Return the scores of `outlook`."""
        ...

    def to_bytes(self) -> bytes | None:
        """Return what was trained on the samples, for another process to load; None for nothing."""
        ...
