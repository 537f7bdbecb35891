"""How far the model that a job starts from is trusted, by its scores of what the job measured.

A model of other machines, or one of outdated measurements, may be wrong about a job. It must not
steer the job against the job's own measurements.
"""

from __future__ import annotations

import numpy as np

from tuner.cost_model.cost_model import Scores

PRIOR_SAMPLES = 8
"""A model is trusted before anything is measured, as by so many samples that agree with it. Half a
round, so that one round of measurements can refute a model. Chosen.
"""
MAX_COMPARED = 256
"""Measurements that are compared, each with each: of more, as many that are evenly apart. All pairs
of 2,700 took a tenth of a second after each round. The standard error is 0.03 or less.
"""
MAX_DOUBLINGS = 1.0
"""A pair counts by the logarithm of the ratio of its times, up to this: pairs that differ by noise
hardly count, and single slow candidates do not decide. Chosen.
"""


def trust(scores: Scores, run_secs: Scores) -> float:
    """Return how far scores may be trusted, from 0 to 1; 1 without measurements.

    Args:
        scores: The scores of measured candidates of one task; higher is faster.
        run_secs: Their times in seconds, infinite for failures.
    """
    num = len(scores)
    compared = np.linspace(0, num - 1, min(num, MAX_COMPARED)).astype(np.int64)
    agreement = concordance(scores[compared], run_secs[compared])
    return float(np.clip((PRIOR_SAMPLES + num * agreement) / (PRIOR_SAMPLES + num), 0.0, 1.0))


def concordance(scores: Scores, run_secs: Scores) -> float:
    """Return the order of pairs: 1 if all agree with the times, -1 if none does, 0 without pairs.

    It is Kendall's tau, where pairs weigh by the difference of their times.
    """
    one, other = np.triu_indices(len(scores), 1)
    with np.errstate(divide="ignore", invalid="ignore"):  # a failure; two have no order
        gain = np.nan_to_num(np.log2(run_secs[other] / run_secs[one]), nan=0.0)
    gain = np.clip(gain, -MAX_DOUBLINGS, MAX_DOUBLINGS)
    total = np.abs(gain).sum()
    return float((np.sign(scores[one] - scores[other]) * gain).sum() / total) if total else 0.0
