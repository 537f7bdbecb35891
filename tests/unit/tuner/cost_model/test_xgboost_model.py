import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.cost_model.cost_model import CostModelError, Samples
from tuner.cost_model.xgboost_model import MIN_SAMPLES, XGBoostModel
from tuner.space.features.features import NUM_FEATURES
from tuner.space.search_space import FeatureMatrix


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


def test_a_stored_model_predicts_the_same() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(100, seed=1))
    loaded = XGBoostModel(base=model.to_bytes())
    rows = synthetic(50, seed=2).features
    assert loaded.is_trained
    assert loaded.predict(rows).tolist() == model.predict(rows).tolist()


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
    assert based.to_bytes() == model.to_bytes()


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


def test_it_is_less_sure_of_what_it_knows_nothing_of() -> None:
    told = synthetic(600, seed=1)
    model = XGBoostModel(seed=0)
    assert model.uncertainty(told.features).tolist() == [0] * 600
    model.update(told)
    spread = model.uncertainty(told.features)
    assert (spread >= 0).all()
    error = np.abs(model.predict(told.features) - told.run_secs.min() / told.run_secs)
    sure, unsure = np.array_split(np.argsort(spread), 2)
    assert error[unsure].mean() > 1.2 * error[sure].mean()


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


def test_a_header_that_was_tampered_with_is_refused(stored: bytes) -> None:
    sizes = json.loads(stored.partition(b"\n")[0])["sizes_bytes"]
    with pytest.raises(CostModelError, match="damaged"):
        XGBoostModel(base=altered(stored, sizes_bytes=[sizes[0] + 1, sizes[1] - 1, *sizes[2:]]))


@pytest.mark.parametrize("seed", range(4))
def test_any_damage_is_an_error_with_a_reason(stored: bytes, seed: int) -> None:
    """Never a crash, and never a model that predicts something else."""
    rng = np.random.default_rng(seed)
    for number in range(100):
        # The header is short, and has most to lose.
        at = int(rng.integers(400 if number % 2 else len(stored)))
        damaged = damage(stored, at, rng)
        with pytest.raises(CostModelError, match="cost model"):
            XGBoostModel(base=damaged)


def damage(stored: bytes, at: int, rng: np.random.Generator) -> bytes:
    """Flip a bit, cut, drop, insert or turn around: something other than `stored`."""
    num = int(rng.integers(1, 64))
    match int(rng.integers(5)):
        case 0:
            return stored[:at] + bytes([stored[at] ^ (1 << num % 8)]) + stored[at + 1 :]
        case 1:
            return stored[:at]
        case 2:
            return stored[:at] + stored[at + num :]
        case 3:
            return stored[:at] + b"\0" + stored[at:]
        case _:
            return stored[at + 1 :] + stored[: at + 1] + b"\n"


@given(junk=st.binary(max_size=200))
def test_any_bytes_are_refused(junk: bytes) -> None:
    with pytest.raises(CostModelError, match="expected a stored cost model"):
        XGBoostModel(base=junk)


def test_features_of_another_width_are_refused() -> None:
    rows: FeatureMatrix = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="columns of features"):
        XGBoostModel().predict(rows)


def test_samples_hold_a_time_for_each_row() -> None:
    with pytest.raises(ValueError, match="2 rows of features for 1 run times"):
        Samples("task", np.zeros((2, NUM_FEATURES), np.float32), np.ones(1))


def test_samples_hold_a_weight_for_each_row() -> None:
    with pytest.raises(ValueError, match="1 weights for 2 run times"):
        Samples("task", np.zeros((2, NUM_FEATURES), np.float32), np.ones(2), np.ones(1))
