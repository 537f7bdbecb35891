"""The quality of a cost model: how well it orders unseen candidates."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tuner.cost_model.boosting import STORE, Boosting, boost, score
from tuner.cost_model.cost_model import Samples, Scores
from tuner.trial import MeasuredTrial

FIRST_ROUND = 16
"""The number of candidates that a search measures first, for the saved trials: one round of
`tuner.loop.search_loop`.
"""
MIN_RIGHT = 8
"""A task with fewer correct measurements is not judged: the order of so few pairs is chance.
Chosen.
"""


@dataclass(frozen=True)
class Quality:
    """How well scores order measured candidates of one task, or of several on the mean.

    Attributes:
        pairwise: The share of pairs of correct candidates that the scores order correctly;
            equal scores count half (Ansor, OSDI 2020, section 7.5).
        top1: The best time of all over the time of the candidate with the best score.
        top5: The best time of all over the best among the five best scores (the top-k score
            of TenSet, NeurIPS 2021, of one task).
        trials_saved: The expected number of trials beyond `FIRST_ROUND` that random order needs to
            find a candidate as fast as the best of the first `FIRST_ROUND` by score.
    """

    pairwise: float
    top1: float
    top5: float
    trials_saved: float

    def to_json(self) -> dict[str, float]:
        """Return the figures by their names."""
        return {
            "pairwise_accuracy": round(self.pairwise, 4),
            "top1": round(self.top1, 4),
            "top5": round(self.top5, 4),
            "trials_saved": round(self.trials_saved, 1),
        }


def quality(scores: Scores, run_secs: Scores) -> Quality | None:
    """Evaluate the scores of a task's candidates; None if too few are correct.

    Args:
        run_secs: Times in seconds, infinite for failures.
    """
    if np.isfinite(run_secs).sum() < MIN_RIGHT:
        return None
    return Quality(
        pairs_in_order(scores, run_secs),
        top_score(scores, run_secs, 1),
        top_score(scores, run_secs, 5),
        _trials_saved(scores, run_secs),
    )


def pairs_in_order(scores: Scores, run_secs: Scores, margin: float = 0.0) -> float:
    """Return the share of pairs of correct candidates that scores order correctly.

    Equal scores count half; without pairs, all are in order.

    Args:
        margin: Pairs count if the times differ by more than this share of the shorter one.
    """
    correct = np.isfinite(run_secs)
    scores, run_secs = scores[correct], run_secs[correct]
    is_faster = (1 + margin) * run_secs[:, None] < run_secs[None, :]
    ahead = np.sign(scores[:, None] - scores[None, :])
    pairs = (1 + ahead[is_faster]) / 2
    return float(pairs.mean()) if len(pairs) else 1.0


def top_score(scores: Scores, run_secs: Scores, num: int) -> float:
    """Return the best time of all over the best among the `num` of the best scores."""
    return float(run_secs.min() / _best_of(scores, run_secs, num))


def mean_quality(qualities: Iterable[Quality]) -> Quality | None:
    """Return the mean over tasks, each counted once; None without tasks."""
    rows = [(q.pairwise, q.top1, q.top5, q.trials_saved) for q in qualities]
    return Quality(*np.mean(rows, axis=0).tolist()) if rows else None


def held_out(
    samples: Sequence[Samples],
    groups: Sequence[Hashable],
    *,
    seed: int = 0,
    settings: Boosting = STORE,
    extra_samples: Sequence[Samples] = (),
    extra_groups: Sequence[Hashable] | None = None,
) -> list[Quality | None]:
    """Judge models on tasks that they were not trained on.

    Each group of samples is scored by a model of all the others.

    Args:
        samples: All samples of a task together.
        groups: The group of each: its operator, say, or the task itself.
        extra_samples: Samples on which no model is judged, but every one is trained, except on
            those of held-out tasks and groups.
        extra_groups: The group of each of these; None if they have no groups.

    Returns:
        The quality for each of `samples`; None if there are too few samples to train or to judge.
    """
    qualities: list[Quality | None] = [None] * len(samples)
    for group in dict.fromkeys(groups):
        held = {s.task_key for s, g in zip(samples, groups, strict=True) if g == group}
        others = [s for s, g in zip(samples, groups, strict=True) if g != group]
        others += [
            s
            for s, g in zip(extra_samples, extra_groups or [None] * len(extra_samples), strict=True)
            if g != group and s.task_key not in held
        ]
        if not others:
            continue
        members = boost(others, seed, settings)
        for index, task_samples in enumerate(samples):
            if groups[index] == group:
                qualities[index] = quality(
                    score(members, task_samples.features), task_samples.run_secs
                )
    return qualities


def pairwise_accuracy(trials: Sequence[MeasuredTrial]) -> float | None:
    """Return the share of pairs whose predicted order is the measured one; None without pairs.

    A trial's score was predicted before it was measured, by a model of earlier rounds only, so this
    is quality on unseen candidates. Pairs are of one round, since scores compare within one, and of
    correct trials with different times; equal scores count half.
    """
    rounds: dict[int, list[tuple[float, float]]] = {}
    for trial in trials:
        if trial.predicted is not None and trial.measurement.ok:
            rounds.setdefault(trial.round, []).append((trial.predicted, trial.best_secs))
    right = total = 0.0
    for pairs in rounds.values():
        for (guess, secs), (other_guess, other_secs) in combinations(pairs, 2):
            if secs == other_secs:
                continue
            total += 1
            if guess == other_guess:
                right += 0.5
            else:
                right += (guess > other_guess) == (secs < other_secs)
    return right / total if total else None


def _best_of(scores: Scores, run_secs: Scores, num: int) -> float:
    return float(run_secs[np.argsort(-scores, kind="stable")[:num]].min())


def _trials_saved(scores: Scores, run_secs: Scores) -> float:
    as_fast = int((run_secs <= _best_of(scores, run_secs, FIRST_ROUND)).sum())
    # In random order of N, the first of r is expected at position (N + 1) / (r + 1).
    return (len(run_secs) + 1) / (as_fast + 1) - min(FIRST_ROUND, len(run_secs))
