"""Scores by an analytic estimate of times, for kinds of targets without a trained model.

The estimate orders candidates by known limits of the hardware, long before a model has seen enough
of them. Its unit is wrong by an unknown factor, which the samples of the job show.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.cost_model.cost_model import Samples, Scores
from tuner.space.search_space import FeatureMatrix

MAX_SCORE = 2.0
"""Limit of a score: candidates that seem more than twice as fast as the best measured one are
equally good. Chosen.
"""


def analytic_scores(
    samples: Sequence[Samples], features: FeatureMatrix, column: int
) -> Scores | None:
    """Return the best measured time relative to the time of each row; None without a time.

    Args:
        samples: The measured candidates of a task.
        features: The rows.
        column: The column with the logarithm of the estimated time in seconds.
    """
    measured = np.concatenate([np.log2(s.run_secs) for s in samples])
    estimated = np.concatenate([s.features[:, column] for s in samples])
    is_correct = np.isfinite(measured)
    if not is_correct.any():
        return None
    factor = np.median((measured - estimated)[is_correct])
    gain = measured[is_correct].min() - (features[:, column] + factor)
    scores: Scores = np.minimum(2.0**gain, MAX_SCORE)
    return scores
