"""How well a cost model ordered candidates that it had not seen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from tuner.trial import Trial


def pairwise_accuracy(trials: Sequence[Trial]) -> float | None:
    """Return the share of pairs whose predicted order is the measured one; None without pairs.

    A trial's score was predicted before it was measured, by a model that had seen earlier rounds
    only, so this is quality on unseen candidates. Pairs are of one round, since scores compare
    within one, and of right trials of different times; equal scores count half. (The measure is
    that of Ansor, OSDI 2020, section 7.5.)
    """
    rounds: dict[int, list[tuple[float, float]]] = {}
    for trial in trials:
        if trial.predicted is not None and trial.measurement.ok:
            rounds.setdefault(trial.round, []).append((trial.predicted, trial.best_secs))
    right = total = 0.0
    for pairs in rounds.values():
        for (score, secs), (other_score, other_secs) in combinations(pairs, 2):
            if secs == other_secs:
                continue
            total += 1
            if score == other_score:
                right += 0.5
            else:
                right += (score > other_score) == (secs < other_secs)
    return right / total if total else None
