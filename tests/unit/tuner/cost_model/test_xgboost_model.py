"""What a cost model learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.tuner.cost_model.synthetic import pairwise_accuracy, synthetic
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import MIN_SAMPLES, XGBoostModel
from tuner.space.cpu_space import CPU_SPACE
from tuner.space.search_space import FeatureMatrix


def test_it_learns_an_order_that_it_was_not_told() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(400, seed=1))
    held_out = synthetic(300, seed=2)
    assert pairwise_accuracy(model, held_out) > 0.75


def test_shuffled_labels_teach_nothing() -> None:
    told = synthetic(400, seed=1)
    model = XGBoostModel(seed=0)
    shuffled = np.random.default_rng(0).permutation(told.run_secs)
    model.update(Samples("task", told.features, shuffled))
    assert 0.4 < pairwise_accuracy(model, synthetic(300, seed=2)) < 0.6


def test_failures_are_learned_as_worst() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, CPU_SPACE.num_features)).astype(np.float32)
    fails = rows[:, 5] > 0.3
    model = XGBoostModel(seed=0)
    model.update(Samples("task", rows, np.where(fails, np.inf, 1e-3)))
    scores = model.predict(rows)
    assert scores[fails].max() < scores[~fails].min()


def test_a_failure_counts_less_than_a_measurement() -> None:
    """Failures by chance must not drown what the times say."""
    told = synthetic(400, seed=1)
    secs = told.run_secs.copy()
    secs[np.random.default_rng(0).choice(400, 80, replace=False)] = np.inf
    model = XGBoostModel(seed=0)
    model.update(replace(told, run_secs=secs))
    assert pairwise_accuracy(model, synthetic(300, seed=2)) > 0.68


def test_it_is_enough_that_tasks_differ_in_scale() -> None:
    """Times of a task are compared within it: a short task is not a good candidate."""
    first, second = synthetic(200, seed=1), synthetic(200, seed=2)
    model, scaled = XGBoostModel(0), XGBoostModel(0)
    for each, factor in ((model, 1), (scaled, 1000)):
        each.update(first)
        each.update(Samples("other", second.features, second.run_secs * factor))
    rows = synthetic(50, seed=3).features
    np.testing.assert_allclose(model.predict(rows), scaled.predict(rows), rtol=1e-5)


def test_an_untrained_model_has_no_opinion() -> None:
    model = XGBoostModel()
    model.update(synthetic(MIN_SAMPLES - 1, seed=0))
    assert not model.is_trained
    assert model.predict(synthetic(5, seed=1).features).tolist() == [0] * 5


def test_a_task_where_everything_failed_is_no_trouble() -> None:
    told = synthetic(20, seed=0)
    model = XGBoostModel()
    model.update(Samples("task", told.features, np.full(20, np.inf)))
    assert np.isfinite(model.predict(told.features)).all()


def test_the_same_samples_in_more_calls_teach_the_same() -> None:
    told = synthetic(60, seed=1)
    whole, pieces = XGBoostModel(seed=3), XGBoostModel(seed=3)
    whole.update(told)
    for start in range(0, 60, 20):
        part = slice(start, start + 20)
        pieces.update(Samples("task", told.features[part], told.run_secs[part]))
        pieces.predict(told.features[:1])
    rows = synthetic(50, seed=2).features
    assert whole.predict(rows).tolist() == pieces.predict(rows).tolist()


def test_a_model_with_a_base_learns_on() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(100, seed=1))
    held_out = synthetic(300, seed=5)
    other = replace(held_out, run_secs=1 / held_out.run_secs)  # what was fast there is slow here
    based = XGBoostModel(base=model.to_bytes())
    assert pairwise_accuracy(based, other) < 0.4
    told = synthetic(400, seed=2)
    based.update(replace(told, run_secs=1 / told.run_secs))
    assert pairwise_accuracy(based, other) > 0.6


def test_a_base_helps_where_samples_are_few() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(800, seed=1))
    held_out = synthetic(300, seed=5)
    few = synthetic(24, seed=2)
    alone, based = XGBoostModel(), XGBoostModel(base=model.to_bytes())
    for each in (alone, based):
        each.update(few)
    assert pairwise_accuracy(based, held_out) > pairwise_accuracy(alone, held_out) + 0.05


def test_a_base_without_samples_predicts_as_it_did() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(100, seed=1))
    rows = synthetic(50, seed=2).features
    based = XGBoostModel(seed=9, base=model.to_bytes())
    assert based.predict(rows).tolist() == model.predict(rows).tolist()


def test_it_is_less_sure_of_what_it_knows_nothing_of() -> None:
    told = synthetic(600, seed=1)
    model = XGBoostModel(seed=0)
    assert model.outlook(told.features).uncertainty.tolist() == [0] * 600
    model.update(told)
    spread = model.outlook(told.features).uncertainty
    assert (spread >= 0).all()
    error = np.abs(model.predict(told.features) - told.run_secs.min() / told.run_secs)
    sure, unsure = np.array_split(np.argsort(spread), 2)
    assert error[unsure].mean() > 1.2 * error[sure].mean()


def test_features_of_another_width_are_refused() -> None:
    rows: FeatureMatrix = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="columns of features"):
        XGBoostModel().predict(rows)


def test_samples_hold_a_time_for_each_row() -> None:
    with pytest.raises(ValueError, match="2 rows of features for 1 run times"):
        Samples("task", np.zeros((2, CPU_SPACE.num_features), np.float32), np.ones(1))
