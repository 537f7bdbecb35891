"""A cost model of gradient-boosted trees that ranks the candidates of a task.

Settings follow from what was measured: at tens of trials a second training is the bottleneck, so
there are few bins and few, sampled rows and columns a tree, on one thread. Squared error on labels
that are relative to the task's best ranks held-out candidates better than XGBoost's ranking
objectives do (`docs/cost-model.md`).
"""

from __future__ import annotations

import numpy as np

from tuner.cost_model import stored_model
from tuner.cost_model.analytic_prior import analytic_scores
from tuner.cost_model.boosting import (
    JOB,
    Member,
    blend,
    boost,
    score,
    spread,
)
from tuner.cost_model.cost_model import Samples, Scores
from tuner.cost_model.trust import trust
from tuner.space.registry import SEARCH_SPACES
from tuner.space.search_space import FeatureMatrix

MIN_SAMPLES = 8
"""With fewer samples of the job, no model of the job is trained: it would fit hundreds of
columns by chance. Half a round; chosen.
"""
BASE_SAMPLES = 64
"""The base model, or the analytic estimate, weighs as much as so many samples of the job, as far as
it is trusted (`docs/cost-model.md`). Four rounds; chosen, not measured.
"""


class XGBoostModel:
    """Scores candidates by boosted trees; see `CostModel`.

    Args:
        base: A stored model (`to_bytes`) to start from. Without samples the model predicts as the
            base does. Samples add a second model, whose share grows with their number, and faster
            if they contradict the base. Without a base, the analytic estimate of the kind is in its
            place, if it has one in seconds.
        kind: The kind of the targets of the candidates, which determines the features.

    Raises:
        CostModelError: If the base is not a stored model, is damaged, or has other versions.
    """

    def __init__(self, seed: int = 0, base: bytes | None = None, kind: str = "cpu") -> None:
        self._seed = seed
        self._kind = kind
        self._samples: list[Samples] = []
        self._base = [] if base is None else stored_model.decode(base, kind)
        self._own: list[Member] = []  # boosted from the samples
        self._members: list[Member] = self._base
        self._is_stale = False
        self._trust: float | None = 1.0

    @property
    def is_trained(self) -> bool:
        """Return whether predictions are meaningful: enough samples, or a base."""
        return bool(self._base) or self._num_samples() >= MIN_SAMPLES

    @property
    def trust(self) -> float:
        """Return how far the samples confirm the base; 1 without one."""
        if self._trust is None:
            rows = np.vstack([s.features for s in self._samples])
            run_secs = np.concatenate([s.run_secs for s in self._samples])
            self._trust = trust(score(self._base, rows), run_secs)
        return self._trust

    @property
    def job_share(self) -> float:
        """Return the share of the job's samples in a score; the rest is that of the start."""
        if not (self._base or SEARCH_SPACES.find(self._kind).estimates_secs):
            return 1.0
        num = self._num_samples()
        return num / (num + BASE_SAMPLES * self.trust)

    def update(self, samples: Samples) -> None:
        """Add samples; the next prediction trains on all of them."""
        self._check_columns(samples.features)
        if len(samples.run_secs):
            self._samples.append(samples)
            self._is_stale = True
            self._trust = None if self._base else 1.0

    def predict(self, features: FeatureMatrix) -> Scores:
        """Return a score for each row; higher is faster."""
        members = self._asked(features)
        if not members:
            return np.zeros(len(features))
        scores = score(members, features)
        prior = self._prior(features)
        if prior is None:
            return scores
        return self.job_share * scores + (1 - self.job_share) * prior

    def _prior(self, features: FeatureMatrix) -> Scores | None:
        """Return the scores of the analytic estimate, if there is no base to start from."""
        space = SEARCH_SPACES.find(self._kind)
        if self._base or not space.estimates_secs:
            return None
        return analytic_scores(self._samples, features, space.estimate_column)

    def uncertainty(self, features: FeatureMatrix) -> Scores:
        """Return the standard deviation of the members' scores for each row."""
        members = self._asked(features)
        return spread(members, features) if members else np.zeros(len(features))

    def to_bytes(self) -> bytes | None:
        """Return the model of the samples alone, as `XGBoostModel(base=...)` reads it.

        The base is stored already, and is larger than what one job learns.
        """
        self._trained()
        return stored_model.encode(self._own, self._kind) if self._own else None

    def _num_samples(self) -> int:
        return sum(len(s.run_secs) for s in self._samples)

    def _asked(self, features: FeatureMatrix) -> list[Member]:
        """Return the trained members, none if there is nothing that they can be asked."""
        self._check_columns(features)
        return self._trained() if len(features) else []

    def _trained(self) -> list[Member]:
        num = self._num_samples()
        if self._is_stale and num >= MIN_SAMPLES:
            self._own = boost(self._samples, self._seed, JOB)
            share = self.job_share
            self._members = blend(self._base, self._own, share) if self._base else self._own
            self._is_stale = False
        return self._members

    def _check_columns(self, features: FeatureMatrix) -> None:
        num = SEARCH_SPACES.find(self._kind).num_features
        if features.ndim != 2 or features.shape[1] != num:
            raise ValueError(f"expected {num} columns of features, not shape {features.shape}")
