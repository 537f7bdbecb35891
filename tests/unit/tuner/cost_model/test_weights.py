"""Weights of samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.tuner.cost_model.synthetic import pairwise_accuracy, synthetic
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.space.cpu_space import CPU_SPACE


def test_weights_say_whom_to_believe() -> None:
    told = synthetic(300, seed=1)
    wrong = replace(told, run_secs=1 / told.run_secs, weights=np.full(300, 0.05))
    model = XGBoostModel(seed=0)
    model.update(replace(told, weights=np.ones(300)))
    model.update(replace(wrong, task_key="other"))
    held_out = synthetic(300, seed=2)
    assert pairwise_accuracy(model, held_out) > 0.7


def test_weights_compare_and_their_scale_means_nothing() -> None:
    told = synthetic(200, seed=1)
    rows = synthetic(50, seed=2).features
    scores = []
    for scale in (1.0, 1e-3):
        model = XGBoostModel(seed=0)
        model.update(replace(told, weights=np.linspace(1, 2, 200) * scale))
        scores.append(model.predict(rows))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-4, atol=1e-5)


def test_samples_hold_a_weight_for_each_row() -> None:
    with pytest.raises(ValueError, match="1 weights for 2 run times"):
        Samples("task", np.zeros((2, CPU_SPACE.num_features), np.float32), np.ones(2), np.ones(1))
