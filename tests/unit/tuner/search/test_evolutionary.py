"""Proposals of the evolutionary search."""

from __future__ import annotations

import numpy as np

from compiler import ops
from tests.contracts.search_strategy import (
    measured,
)
from tests.unit.tuner.search.oracle_model import COLUMN, Oracle, searcher
from tests.unit.tuner.space.gpu_sketches import product_sketch
from tests.unit.tuner.space.gpu_spaces import H200
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.space.design_space import SketchSpace


def test_a_share_of_the_proposals_stays_random(space: SketchSpace) -> None:
    """The model may be wrong: it has to see what it does not like."""
    search = searcher(space, Oracle(COLUMN))
    search.tell(measured(search.ask(16)))
    scores = [p.predicted or 0.0 for p in search.ask(16)]
    chosen, drawn = scores[:15], scores[15]
    assert min(chosen) > drawn


def test_proposals_climb_what_the_model_predicts(space: SketchSpace) -> None:
    column = 20
    search = searcher(space, Oracle(column))
    search.tell(measured(search.ask(16)))
    best = max(p.predicted or 0.0 for p in search.ask(16))
    rng = np.random.default_rng(1)
    drawn = max(
        float(space.features(i, space.draw(i, 300, rng))[:, column].max()) for i in range(2)
    )
    assert best >= drawn


def test_estimates_in_seconds_order_the_first_round_of_all_sketches() -> None:
    func = ops.matmul(512, 512, 512)
    space = SketchSpace([product_sketch(func, H200, padding) for padding in (0, 4)], H200)
    proposals = searcher(space, XGBoostModel(0, kind="cuda")).ask(16)
    scores = [p.predicted for p in proposals if p.predicted is not None]
    assert len(scores) == len(proposals)
    rng = np.random.default_rng(1)
    column = space.search_space.estimate_column
    drawn = [space.features(i, space.draw(i, 100, rng))[:, column].min() for i in range(2)]
    assert max(scores) >= -min(drawn)
    assert min(scores[:12]) > np.median(scores[12:])
