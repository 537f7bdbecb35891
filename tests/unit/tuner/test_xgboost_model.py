import json

import numpy as np
import pytest

from tuner.cost_model.cost_model import CostModelError, Samples
from tuner.cost_model.xgboost_model import MIN_SAMPLES, XGBoostModel
from tuner.space.features import NUM_FEATURES, FeatureMatrix


def synthetic(num: int, seed: int) -> Samples:
    """Return samples whose time depends on three columns, not linearly, with 2% of noise."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(num, NUM_FEATURES)).astype(np.float32)
    slowness = np.abs(rows[:, 3] - 0.5) + (rows[:, 7] > 0) + 0.5 * rows[:, 7] * rows[:, 11]
    return Samples("task", rows, 1e-3 * np.exp(slowness + 0.02 * rng.normal(size=num)))


def pairwise_accuracy(model: XGBoostModel, samples: Samples) -> float:
    """Return the share of pairs that the model puts in the right order."""
    scores = model.predict(samples.features)
    faster = samples.run_secs[:, None] < samples.run_secs[None, :]
    preferred = scores[:, None] > scores[None, :]
    return float(preferred[faster].mean())


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
    rows = rng.normal(size=(200, NUM_FEATURES)).astype(np.float32)
    fails = rows[:, 5] > 0.3
    model = XGBoostModel(seed=0)
    model.update(Samples("task", rows, np.where(fails, np.inf, 1e-3)))
    scores = model.predict(rows)
    assert scores[fails].max() < scores[~fails].min()


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


def test_a_stored_model_predicts_the_same() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(100, seed=1))
    loaded = XGBoostModel(base=model.to_bytes())
    rows = synthetic(50, seed=2).features
    assert loaded.is_trained
    assert loaded.predict(rows).tolist() == model.predict(rows).tolist()


def test_a_loaded_model_learns_on() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(100, seed=1))
    held_out = synthetic(300, seed=5)
    before = pairwise_accuracy(model, held_out)
    loaded = XGBoostModel(base=model.to_bytes())
    loaded.update(synthetic(400, seed=2))
    assert pairwise_accuracy(loaded, held_out) > before


def test_an_untrained_model_is_not_stored() -> None:
    with pytest.raises(CostModelError, match="without training"):
        XGBoostModel().to_bytes()


def altered(stored: bytes, **changes: object) -> bytes:
    header, _, trees = stored.partition(b"\n")
    return json.dumps({**json.loads(header), **changes}).encode() + b"\n" + trees


@pytest.fixture(scope="module")
def stored() -> bytes:
    model = XGBoostModel(seed=0)
    model.update(synthetic(40, seed=1))
    return model.to_bytes()


def test_another_feature_schema_is_refused(stored: bytes) -> None:
    with pytest.raises(CostModelError, match="feature_schema 99, this program has"):
        XGBoostModel(base=altered(stored, feature_schema=99))


def test_another_number_of_columns_is_refused(stored: bytes) -> None:
    with pytest.raises(CostModelError, match="num_features 3, this program has"):
        XGBoostModel(base=altered(stored, num_features=3))


def test_another_format_version_is_refused(stored: bytes) -> None:
    with pytest.raises(CostModelError, match="format_version 99"):
        XGBoostModel(base=altered(stored, format_version=99))


@pytest.mark.parametrize("junk", [b"", b"\n", b"{}\n", b"\x80\x04.", b"[1]\nx", b"no newline"])
def test_what_is_no_model_is_refused(junk: bytes) -> None:
    with pytest.raises(CostModelError, match="expected a stored cost model"):
        XGBoostModel(base=junk)


def test_damaged_trees_are_refused(stored: bytes) -> None:
    header, _, trees = stored.partition(b"\n")
    with pytest.raises(CostModelError, match="damaged"):
        XGBoostModel(base=header + b"\n" + trees[: len(trees) // 2])


def test_features_of_another_width_are_refused() -> None:
    rows: FeatureMatrix = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="columns of features"):
        XGBoostModel().predict(rows)


def test_samples_hold_a_time_for_each_row() -> None:
    with pytest.raises(ValueError, match="2 rows of features for 1 run times"):
        Samples("task", np.zeros((2, NUM_FEATURES), np.float32), np.ones(1))
