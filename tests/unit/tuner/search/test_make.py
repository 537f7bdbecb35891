"""Strategies by name."""

from __future__ import annotations

import pytest

from service.wire.requests import Strategy
from tests.contracts.search_strategy import (
    MATMUL,
)
from tuner.cost_model.cost_model import CostModelError
from tuner.search.make import STRATEGIES, make_strategy
from tuner.warm_start import WarmStart


def test_an_unknown_strategy_is_refused_with_a_hint() -> None:
    with pytest.raises(
        ValueError, match=r"unknown search strategy .evolutionry.: did you mean .evo"
    ):
        make_strategy("evolutionry", MATMUL, 0)


def test_a_stored_model_that_is_none_is_refused() -> None:
    with pytest.raises(CostModelError):
        make_strategy("evolutionary", MATMUL, 0, WarmStart(b"no model"))


def test_jobs_may_have_every_strategy() -> None:
    assert {strategy.value for strategy in Strategy} == set(STRATEGIES)
