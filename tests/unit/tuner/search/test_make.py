"""Strategies by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright.local.tuning import tune
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


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_strategy_is_in_the_documents_and_on_the_page(name: str) -> None:
    root = Path(__file__).parents[4]
    assert f"| `{name}` |" in (root / "docs" / "search.md").read_text(encoding="utf-8")
    assert f'"{name}"' in (root / "dashboard/src/pages/submit/draft.ts").read_text(encoding="utf-8")
    assert f'`"{name}"`' in (tune.__doc__ or "")
