"""Models of kinds without recorded measurements start from the analytic estimate."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from tests.unit.tuner.cost_model.synthetic import pairwise_accuracy
from tests.unit.tuner.space.gpu_sketches import product_sketch
from tests.unit.tuner.space.gpu_spaces import H200
from tuner.cost_model.analytic_prior import MAX_SCORE, analytic_scores
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import BASE_SAMPLES, MIN_SAMPLES, XGBoostModel
from tuner.space.cuda_space import CUDA_SPACE
from tuner.space.features.cuda.features import NUM_FEATURES, features
from tuner.space.filter.cuda_filter import passes

COLUMN = CUDA_SPACE.estimate_column


def rows_of(secs: list[float]) -> Samples:
    """Return samples whose estimate is three times their time."""
    rows = np.zeros((len(secs), NUM_FEATURES), np.float32)
    rows[:, COLUMN] = np.log2(np.array(secs) * 3)
    return Samples("task", rows, np.array(secs))


def measured(num: int, seed: int) -> Samples:
    """Return candidates of a product, each up to a third slower or faster than estimated."""
    sketch = product_sketch(ops.matmul(1024, 1024, 1024), H200)
    rng = np.random.default_rng(seed)
    choices = sketch.draw(100 * num, rng)
    matrix = features(sketch, choices[passes(sketch, choices, H200)][:num], H200)
    assert len(matrix) == num
    noise = np.exp(rng.uniform(-0.3, 0.3, num))
    return Samples("task", matrix, 1.7 * noise * 2.0 ** matrix[:, COLUMN].astype(np.float64))


def test_scores_are_relative_to_the_best_measured_time() -> None:
    scores = analytic_scores([rows_of([2e-3, 1e-3])], rows_of([1e-3, 4e-3, 1e-6]).features, COLUMN)
    assert scores is not None
    assert scores.tolist() == pytest.approx([1, 0.25, MAX_SCORE], rel=1e-5)


def test_failures_say_nothing_about_times() -> None:
    samples = rows_of([1e-3, 1e-3])
    failed = Samples("task", samples.features, np.array([np.inf, 1e-3]))
    assert analytic_scores([failed], samples.features, COLUMN) == pytest.approx([1, 1], rel=1e-5)
    failed = Samples("task", samples.features, np.array([np.inf, np.inf]))
    assert analytic_scores([failed], samples.features, COLUMN) is None


def test_few_measurements_do_not_replace_the_estimate() -> None:
    model = XGBoostModel(0, kind="cuda")
    model.update(measured(MIN_SAMPLES, seed=1))
    assert model.is_trained
    # The estimate alone orders nine of ten pairs: noise of a third swaps only near ones.
    assert pairwise_accuracy(model, measured(200, seed=2)) > 0.85


def test_many_measurements_outweigh_the_estimate() -> None:
    samples = measured(400, seed=1)
    opposite = Samples("task", samples.features, 1e-6 / samples.run_secs)
    model = XGBoostModel(0, kind="cuda")
    model.update(opposite)
    assert len(opposite.run_secs) > 4 * BASE_SAMPLES
    held_out = measured(200, seed=2)
    reverse = Samples("task", held_out.features, 1e-6 / held_out.run_secs)
    assert pairwise_accuracy(model, reverse) > 0.7


def test_a_job_without_correct_trials_is_scored_by_its_failures() -> None:
    samples = measured(MIN_SAMPLES, seed=1)
    model = XGBoostModel(0, kind="cuda")
    model.update(Samples("task", samples.features, np.full(MIN_SAMPLES, np.inf)))
    assert np.isfinite(model.predict(samples.features)).all()
