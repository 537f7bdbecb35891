"""A random search."""

from __future__ import annotations

from tests.contracts.search_strategy import (
    MATMUL,
    measured,
)
from tuner.search.make import make_strategy


def test_a_random_search_has_no_model() -> None:
    search = make_strategy("random", MATMUL, 0)
    search.tell(measured(search.ask(32)))
    assert search.learned() is None
    assert all(p.predicted is None for p in search.ask(8))
