"""Proposals of the evolutionary search."""

from __future__ import annotations

import numpy as np

from tests.contracts.search_strategy import (
    measured,
)
from tests.unit.tuner.search.oracle_model import COLUMN, Oracle, searcher
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
