"""Stored models: they predict the same, and damaged ones are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tuner.cost_model.synthetic import synthetic
from tuner.cost_model.boosting import STORE, boost, score
from tuner.cost_model.cost_model import CostModelError
from tuner.cost_model.stored_model import decode, encode
from tuner.cost_model.xgboost_model import XGBoostModel


def test_a_stored_model_predicts_the_same() -> None:
    model = XGBoostModel(seed=0)
    model.update(synthetic(100, seed=1))
    loaded = XGBoostModel(base=model.to_bytes())
    rows = synthetic(50, seed=2).features
    assert loaded.is_trained
    assert loaded.predict(rows).tolist() == model.predict(rows).tolist()


def test_a_model_is_stored_without_its_base(stored: bytes) -> None:
    assert XGBoostModel().to_bytes() is None
    based = XGBoostModel(seed=0, base=stored)
    assert based.to_bytes() is None, "it learned nothing yet"
    alone = XGBoostModel(seed=0)
    for model in (based, alone):
        model.update(synthetic(40, seed=3))
    assert based.to_bytes() == alone.to_bytes()


def altered(stored: bytes, **changes: object) -> bytes:
    header, _, trees = stored.partition(b"\n")
    return json.dumps({**json.loads(header), **changes}).encode() + b"\n" + trees


@pytest.fixture(scope="module")
def stored() -> bytes:
    model = XGBoostModel(seed=0)
    model.update(synthetic(40, seed=1))
    content = model.to_bytes()
    assert content is not None
    return content


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


def test_a_stored_member_predicts_speeds_as_before() -> None:
    """Also one of logarithms or ranks: what it learned is stored with its trees."""
    told = synthetic(200, seed=1)
    rows = synthetic(50, seed=2).features
    for label in ("speed", "logarithm", "rank"):
        members = boost([told], 0, replace(STORE, num_trees=20, labels=(label,)))
        predicted = score(members, rows)
        np.testing.assert_array_equal(score(decode(encode(members)), rows), predicted)
        speeds = told.run_secs.min() / told.run_secs
        fitted = score(members, told.features)
        assert abs(fitted - speeds).mean() < 0.1, label
