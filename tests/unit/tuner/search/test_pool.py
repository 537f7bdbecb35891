"""The best rows of a sketch, by the model and by the estimate."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.runtime.measurement import Measurement
from tests.contracts.proposer import LARGE
from tests.unit.tuner.search.oracle_model import COLUMN, Oracle
from tuner.cost_model.cost_model import Samples
from tuner.search.pool import Pool
from tuner.search.search_state import SearchState
from tuner.space.design_space import SketchSpace
from tuner.space.features.features import FEATURE_NAMES
from tuner.space.generate import design_space
from tuner.trial import MeasuredTrial

SCORE = 0.5


class Indifferent(Oracle):
    """A model of other tasks that finds all candidates of this one alike."""

    def __init__(self) -> None:
        super().__init__()
        self.update(Samples("other", np.zeros((0, len(FEATURE_NAMES)), np.float32), np.zeros(0)))

    def predict(self, features: np.ndarray) -> np.ndarray:
        return np.full(len(features), SCORE)


@pytest.fixture(scope="module")
def space() -> SketchSpace:
    return design_space(LARGE)


def test_the_estimate_decides_among_rows_until_the_task_is_measured(space: SketchSpace) -> None:
    state = SearchState(space, Indifferent(), LARGE.key)
    pool = Pool(state, 0, np.random.default_rng(0))
    shortest = pool.matrix[:, COLUMN].min()
    (_, first), *_ = before = pool.best(4, state, 0.0)
    assert state.features([first])[0, COLUMN] == shortest
    scores = [score for score, _ in before]
    assert scores[0] == pytest.approx(SCORE)
    assert scores[-1] < scores[0]
    state.record([MeasuredTrial(0, space.candidate(first), Measurement((1.0,)))])
    assert {score for score, _ in pool.best(4, state, 0.0)} == {SCORE}


def test_the_model_alone_chooses_the_sketch(space: SketchSpace) -> None:
    """The estimates of two sketches may have different errors."""
    state, rng = SearchState(space, Indifferent(), LARGE.key), np.random.default_rng(0)
    pools = [Pool(state, index, rng) for index in range(len(space.sketches))]
    assert len(pools) > 1
    best = [pool.best(1, state, 0.0)[0][0] for pool in pools]
    assert best == pytest.approx([SCORE] * len(pools))
