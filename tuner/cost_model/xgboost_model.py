"""A cost model of gradient-boosted trees that ranks the candidates of a task.

Settings follow from what was measured: at tens of trials a second training is the bottleneck, so
there are few bins and few, sampled rows and columns a tree, on one thread. Squared error on labels
that are relative to the task's best ranks held-out candidates better than XGBoost's ranking
objectives do (`docs/cost-model.md`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.cost_model import stored_model
from tuner.cost_model.analytic_prior import analytic_scores
from tuner.cost_model.boosting import (
    JOB,
    Member,
    blend,
    boost,
    combined,
    member_scores,
)
from tuner.cost_model.cost_model import Outlook, Samples, Scores
from tuner.cost_model.trust import trust
from tuner.space.registry import SEARCH_SPACES
from tuner.space.search_space import FeatureMatrix

MIN_SAMPLES = 8
"""With fewer samples of the job, no model of the job is trained: it would fit hundreds of
columns by chance. Half a round; chosen.
"""
MANY_SAMPLES = 512
"""From so many samples of a job on, not each round trains: another 16 samples change little, and
training takes longer with each. Chosen.
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
        self._starts: list[Scores] = []  # the base's scores of the samples
        self._base = [] if base is None else stored_model.decode(base, kind)
        self._own: list[Member] = []  # boosted from the first `_trained_on` samples
        self._trained_on = 0
        self._trust: float | None = 1.0

    @property
    def is_trained(self) -> bool:
        """Return whether predictions are meaningful: enough samples, or a base."""
        return bool(self._base) or self._num_samples() >= MIN_SAMPLES

    @property
    def trust(self) -> float:
        """Return how far the samples confirm the base; 1 without one."""
        if self._trust is None:
            scores = combined(self._base, np.vstack(self._starts)).scores
            run_secs = np.concatenate([s.run_secs for s in self._samples])
            self._trust = trust(scores, run_secs)
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
            if self._base:
                self._starts.append(self.start_scores(samples.features))
                self._trust = None

    def start_scores(self, features: FeatureMatrix) -> Scores:
        """Return the base's scores of each row, a column a member."""
        self._check_columns(features)
        return member_scores(self._base, features)

    def predict(self, features: FeatureMatrix) -> Scores:
        """Return a score for each row; higher is faster."""
        return self.outlook(features).scores

    def outlook(self, features: FeatureMatrix, start: Scores | None = None) -> Outlook:
        """Return the mean of the members' scores for each row, and their standard deviation."""
        self._check_columns(features)
        if not self.is_trained or not len(features):
            return Outlook(np.zeros(len(features)), np.zeros(len(features)))
        job_members = self._trained(_num_trained(self._num_samples()))
        members = job_members
        if self._base and job_members:
            members = blend(self._base, job_members, self.job_share)
        start = self.start_scores(features) if start is None else start
        columns = np.hstack([start, member_scores(job_members, features)])
        outlook = combined(members or self._base, columns)
        prior = self._prior(features)
        if prior is None:
            return outlook
        scores = self.job_share * outlook.scores + (1 - self.job_share) * prior
        return Outlook(scores, outlook.uncertainty)

    def _prior(self, features: FeatureMatrix) -> Scores | None:
        """Return the scores of the analytic estimate, if there is no base to start from."""
        space = SEARCH_SPACES.find(self._kind)
        if self._base or not space.estimates_secs:
            return None
        return analytic_scores(self._samples, features, space.estimate_column)

    def to_bytes(self) -> bytes | None:
        """Return the model of the samples alone, as `XGBoostModel(base=...)` reads it.

        The base is stored already, and is larger than what one job learns.
        """
        members = self._trained(self._num_samples())
        return stored_model.encode(members, self._kind) if members else None

    def _num_samples(self) -> int:
        return sum(len(s.run_secs) for s in self._samples)

    def _trained(self, num: int) -> list[Member]:
        """Return the members that are boosted from the first `num` samples; none of too few."""
        if num >= MIN_SAMPLES and num != self._trained_on:
            self._own = boost(_first(self._samples, num), self._seed, JOB)
            self._trained_on = num
        return self._own

    def _check_columns(self, features: FeatureMatrix) -> None:
        num = SEARCH_SPACES.find(self._kind).num_features
        if features.ndim != 2 or features.shape[1] != num:
            raise ValueError(f"expected {num} columns of features, not shape {features.shape}")


def _num_trained(num: int) -> int:
    """Return how many of `num` samples are trained on: all of few, at least 15/16 of many.

    It depends on the number alone, so that samples in any number of calls teach the same.
    """
    if num < MANY_SAMPLES:
        return num
    return num - num % (1 << (num.bit_length() - 5))


def _first(samples: Sequence[Samples], num: int) -> list[Samples]:
    """Return the first `num` rows of samples."""
    taken: list[Samples] = []
    for group in samples:
        if num <= 0:
            break
        taken.append(group if len(group.run_secs) <= num else group.first(num))
        num -= len(group.run_secs)
    return taken
