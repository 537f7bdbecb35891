"""How far a model is trusted, against counting pairs by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tuner.cost_model.synthetic import synthetic
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.trust import concordance, trust
from tuner.cost_model.xgboost_model import BASE_SAMPLES, XGBoostModel

ORDERS = st.permutations(range(7))


@given(ORDERS, ORDERS)
def test_pairs_that_differ_clearly_count_alike(scores: list[int], doublings: list[int]) -> None:
    pairs = combinations(range(len(scores)), 2)
    agree = [(scores[a] - scores[b]) * (doublings[b] - doublings[a]) > 0 for a, b in pairs]
    tau = 2 * sum(agree) / len(agree) - 1
    secs = 1e-6 * 2.0 ** np.array(doublings)
    assert concordance(np.array(scores, float), secs) == pytest.approx(tau)


def test_pairs_that_differ_by_noise_hardly_count() -> None:
    secs = np.array([1.00, 1.01, 2.0])
    # The pair of 1.00 and 1.01 is in the wrong order, the two clear ones are in the right order.
    assert concordance(np.array([2.0, 3.0, 1.0]), secs) > 0.98


def test_a_failure_is_slower_than_any_time() -> None:
    secs = np.array([1.0, np.inf, np.inf])
    assert concordance(np.array([3.0, 2.0, 1.0]), secs) == 1
    assert concordance(np.array([1.0, 2.0, 3.0]), secs) == -1


def test_without_measurements_a_model_is_trusted() -> None:
    assert trust(np.empty(0), np.empty(0)) == 1
    assert trust(np.ones(1), np.ones(1)) == pytest.approx(8 / 9)


def test_one_round_refutes_a_model_that_is_wrong_about_everything() -> None:
    secs = np.arange(1.0, 17.0)
    assert trust(-secs, secs) == 1
    assert trust(secs, secs) == 0


def test_a_model_that_says_nothing_loses_trust_slowly() -> None:
    secs = np.arange(1.0, 17.0)
    assert trust(np.zeros(16), secs) == pytest.approx(8 / 24)


def test_a_refuted_base_has_no_part_in_the_scores() -> None:
    told = synthetic(64, seed=1)
    wrong = XGBoostModel(seed=0)
    wrong.update(Samples("task", told.features, 1 / told.run_secs))
    alone, based = XGBoostModel(seed=3), XGBoostModel(seed=3, base=wrong.to_bytes())
    for model in (alone, based):
        model.update(told)
    rows = synthetic(50, seed=2).features
    assert based.trust == 0
    np.testing.assert_allclose(based.predict(rows), alone.predict(rows))


def test_a_confirmed_base_weighs_as_many_samples() -> None:
    told = synthetic(BASE_SAMPLES, seed=1)
    right = XGBoostModel(seed=0)
    right.update(told)
    alone, based = XGBoostModel(seed=3), XGBoostModel(seed=3, base=right.to_bytes())
    for model in (alone, based):
        model.update(told)
    assert based.trust > 0.8
    rows = synthetic(50, seed=2).features
    share = 1 / (1 + based.trust)
    expected = share * alone.predict(rows) + (1 - share) * right.predict(rows)
    np.testing.assert_allclose(based.predict(rows), expected, rtol=1e-5)
