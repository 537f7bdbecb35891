"""Boosted trees on samples: the labels, the settings, the members of a model.

A sample's speed is its task's best time over its own time: 1 for the best and 0 for a failure. So
tasks of all sizes have one scale. Members of a model predict the speed itself, whose squared error
weighs the fast end most, its logarithm, whose squared error orders slow candidates, too, or the
rank of the sample in its task, by which all candidates count alike. `docs/cost-model.md` has the
measured alternatives.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from tuner.cost_model.cost_model import Outlook, Samples, Scores
from tuner.space.search_space import FeatureMatrix

if TYPE_CHECKING:
    import xgboost

if find_spec("xgboost") is None:
    raise ModuleNotFoundError("No module named 'xgboost'", name="xgboost")

Label: TypeAlias = Literal["speed", "logarithm", "rank"]
"""What a member predicts; scores are speeds in any case."""

LOG_RANGE = 4.0
"""Doublings of the time over which the logarithm falls from 1 to 0; slower ones count alike. Of
the candidates of the recorded sets that were drawn from whole spaces, 87% are within this range.
"""


@dataclass(frozen=True, slots=True)
class Boosting:
    """The settings by which a model is boosted.

    Attributes:
        labels: What each member predicts; members are boosted from different seeds.
        num_trees: The trees of a member.
        max_depth: The most splits from the root of a tree to a leaf.
        min_child_weight: The least weight of a leaf, where the mean sample has 1.
        columns: The share of the columns that a tree may split by.
        shrinkage: The learning rate is this over the number of trees, at most 0.3, XGBoost's
            default.
    """

    labels: tuple[Label, ...]
    num_trees: int
    max_depth: int
    min_child_weight: float
    columns: float
    shrinkage: float

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of XGBoost."""
        return {
            **_PARAMETERS,
            "max_depth": self.max_depth,
            "min_child_weight": self.min_child_weight,
            "colsample_bytree": self.columns,
            "eta": min(self.shrinkage / self.num_trees, 0.3),
        }


JOB = Boosting(("speed", "speed", "speed"), 40, 5, 1.0, 0.4, 8.0)
"""The model within a job. The spread of the scores of its members is its uncertainty; three is the
fewest that give a useful spread, and prediction time grows with each. Training takes about a
millisecond a tree, and a job trains after each round: 40 are the most that cost little beside one.
Chosen.
"""
STORE = Boosting(("speed", "logarithm", "rank"), 200, 8, 5.0, 0.2, 10.0)
"""A model of many tasks, which is trained once for many jobs. Than with trees of depth 6, 0.007
more of the pairs of held-out shapes are in order, and the loss after 15 trials is a seventh less.
Each of the three labels gave as much before (`docs/cost-model.md`).
"""

_PARAMETERS: dict[str, Any] = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_bin": 32,
    "subsample": 0.8,
    "nthread": 1,
    "verbosity": 0,
}
FAILURE_WEIGHT = 0.25
"""Weight of a failure, where a measured time has 1. Its label, 0, is far from all others, so
failures would dominate the squared error. Chosen, not measured.
"""
SETTINGS = f"{_PARAMETERS} {STORE} {LOG_RANGE} {FAILURE_WEIGHT}"
"""All settings that determine a model of given samples."""


@dataclass(frozen=True)
class Member:
    """Boosted trees, and their share in the model; only the ratio of shares matters."""

    trees: xgboost.Booster
    share: float = 1.0


def _library() -> Any:
    """Return XGBoost, with one thread for all that it does in this thread.

    It takes a third of a second to load. It loads models and copies arrays with several threads
    otherwise, whatever the setting of the model says. A fork lacks these threads, and would wait
    for them for ever.
    """
    import xgboost  # noqa: PLC0415

    xgboost.set_config(nthread=1)
    return xgboost


def load_trees(content: bytes) -> xgboost.Booster:
    """Return the trees that `Booster.save_raw` wrote, in JSON or UBJSON."""
    trees: xgboost.Booster = _library().Booster({"nthread": 1})
    trees.load_model(bytearray(content))
    return trees


def boost(samples: Sequence[Samples], seed: int, settings: Boosting = STORE) -> list[Member]:
    """Return the members of a model of these samples, one for each label, with equal shares."""
    speeds = np.concatenate(labels_of(samples))
    ranks = np.concatenate(ranks_of(samples))
    targets = {"speed": speeds, "logarithm": _logarithms(speeds), "rank": ranks}
    # With a mean of 1, weights do not change the regularization of leaves, only their ratios count.
    weights = np.concatenate([_weights(group) for group in samples])
    library = _library()
    matrix = library.QuantileDMatrix(
        np.vstack([s.features for s in samples]),
        weight=weights / max(float(weights.mean()), 1e-12),
        max_bin=_PARAMETERS["max_bin"],
        nthread=1,
    )
    slope, offset = _line(ranks, speeds, weights)
    parameters = settings.parameters()
    members = []
    for number, label in enumerate(settings.labels):
        matrix.set_label(targets[label])
        of_member = {**parameters, "seed": (seed + number) % (1 << 31)}
        trees = library.train(of_member, matrix, settings.num_trees)
        trees.set_attr(label=label)
        if label == "rank":
            trees.set_attr(slope=repr(slope), offset=repr(offset))
        members.append(Member(trees))
    return members


def _logarithms(speeds: Scores) -> Scores:
    doublings: Scores = np.log2(np.maximum(speeds, 2.0**-LOG_RANGE))
    return 1 + doublings / LOG_RANGE


def _speeds(trees: xgboost.Booster, predicted: Scores) -> Scores:
    """Return predictions of a member as speeds."""
    attributes: dict[str, Any] = trees.attributes()
    speeds: Scores = predicted
    if attributes.get("label") == "logarithm":
        speeds = np.exp2(LOG_RANGE * (predicted - 1))
    elif attributes.get("label") == "rank":
        speeds = float(attributes["slope"]) * predicted + float(attributes["offset"])
    return speeds


def without_statistics(members: Sequence[Member]) -> list[Member]:
    """Return members that predict the same, for storage: they compress to less than half.

    XGBoost keeps the gain, the weight and the mean of each node for its own reports, in numbers
    that hardly compress.
    """
    return [Member(_without_statistics(member.trees), member.share) for member in members]


def _without_statistics(trees: xgboost.Booster) -> xgboost.Booster:
    content = json.loads(bytes(trees.save_raw("json")))
    for tree in content["learner"]["gradient_booster"]["model"]["trees"]:
        for name in ("loss_changes", "sum_hessian", "base_weights"):
            tree[name] = [0.0] * len(tree[name])
    return load_trees(json.dumps(content).encode())


def blend(base: Sequence[Member], new: Sequence[Member], new_share: float) -> list[Member]:
    """Return the members of both, where `new` get the given share of the total."""
    return [
        *_with_share(base, 1.0 - new_share),
        *_with_share(new, new_share),
    ]


def score(members: Sequence[Member], features: FeatureMatrix) -> Scores:
    """Return the mean score of the members for each row, weighted by their shares."""
    return combined(members, member_scores(members, features)).scores


def member_scores(members: Sequence[Member], features: FeatureMatrix) -> Scores:
    """Return the scores of each row, a column a member."""
    scores = np.empty((len(features), len(members)))
    for column, member in enumerate(members):
        predicted = member.trees.inplace_predict(features)
        scores[:, column] = _speeds(member.trees, predicted)
    return scores


def combined(members: Sequence[Member], scores: Scores) -> Outlook:
    """Return the mean of the members' scores, and their standard deviation, by their shares.

    Args:
        scores: What `member_scores` returned for these members.
    """
    shares = np.array([member.share for member in members])
    shares /= shares.sum()
    means = scores @ shares
    return Outlook(means, np.sqrt((scores - means[:, None]) ** 2 @ shares))


def _with_share(members: Sequence[Member], say: float) -> list[Member]:
    total = sum(member.share for member in members)
    return [Member(member.trees, say * member.share / total) for member in members]


def labels_of(samples: Sequence[Samples]) -> list[Scores]:
    """Return the speeds of samples: the best time of their task over their own."""
    best: dict[str, float] = {}
    for task_samples in samples:
        fastest = float(task_samples.run_secs.min(initial=np.inf))
        best[task_samples.task_key] = min(best.get(task_samples.task_key, np.inf), fastest)
    return [_labels(task_samples, best[task_samples.task_key]) for task_samples in samples]


def _labels(samples: Samples, best_secs: float) -> Scores:
    if not np.isfinite(best_secs):
        return np.zeros(len(samples.run_secs))
    labels: Scores = best_secs / samples.run_secs
    return labels


def ranks_of(samples: Sequence[Samples]) -> list[Scores]:
    """Return the ranks of samples in their tasks: 1 for the fastest, 0 for the slowest.

    They are evenly spaced. Equal times have the mean of their ranks, and failures have 0.
    """
    secs: dict[str, Scores] = {}
    for group in samples:
        correct = group.run_secs[np.isfinite(group.run_secs)]
        secs[group.task_key] = np.append(secs.get(group.task_key, []), correct)
    return [_ranks(group.run_secs, np.sort(secs[group.task_key])) for group in samples]


def _ranks(run_secs: Scores, in_order: Scores) -> Scores:
    is_correct = np.isfinite(run_secs)
    if len(in_order) < 2:
        return is_correct.astype(np.float64)
    before = np.searchsorted(in_order, run_secs, "left")
    behind = len(in_order) - np.searchsorted(in_order, run_secs, "right")
    middle = (len(in_order) - 1 + behind - before) / 2
    return np.where(is_correct, middle / (len(in_order) - 1), 0.0)


def _line(ranks: Scores, speeds: Scores, weights: Scores) -> tuple[float, float]:
    """Return slope and offset of the line that predicts speeds from ranks best.

    On the recorded sets, the mean speed of a rank is within 0.1 of it.
    """
    total = max(float(weights.sum()), 1e-12)
    mean_rank, mean_speed = weights @ ranks / total, weights @ speeds / total
    variance = float(weights @ (ranks - mean_rank) ** 2)
    if not variance:
        return 1.0, 0.0
    slope = float(weights @ ((ranks - mean_rank) * (speeds - mean_speed))) / variance
    return slope, float(mean_speed - slope * mean_rank)


def _weights(samples: Samples) -> Scores:
    of_outcome: Scores = np.where(np.isfinite(samples.run_secs), 1.0, FAILURE_WEIGHT)
    return of_outcome if samples.weights is None else of_outcome * samples.weights
