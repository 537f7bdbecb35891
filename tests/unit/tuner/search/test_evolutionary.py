"""Proposals of the evolutionary search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from compiler import ops
from tests.contracts.search_strategy import TARGET, measured
from tests.unit.tuner.search.oracle_model import COLUMN, Oracle, searcher
from tests.unit.tuner.space.gpu_sketches import product_sketch
from tests.unit.tuner.space.gpu_spaces import H200
from tuner.candidate import Candidate
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.search.evolutionary import CENTERS
from tuner.space.design_space import SketchSpace
from tuner.space.features.features import FEATURE_NAMES
from tuner.space.generate import design_space
from tuner.task import Task


@pytest.fixture
def large() -> SketchSpace:
    return design_space(Task(ops.matmul(1024, 1024, 1024), TARGET))


def test_a_share_of_the_proposals_stays_random(space: SketchSpace) -> None:
    """The model may be wrong: it has to see what it does not like."""
    search = searcher(space, Oracle(COLUMN))
    search.tell(measured(search.ask(16)))
    scores = [p.predicted or 0.0 for p in search.ask(16)]
    chosen, drawn = scores[:15], scores[15]
    assert min(chosen) > drawn


def test_small_rounds_have_random_proposals_too(large: SketchSpace) -> None:
    search = searcher(large, Oracle(COLUMN))
    search.tell(measured(search.ask(16)))
    rounds = [[p.predicted or 0.0 for p in search.ask(4)] for _ in range(65)]
    # What the model chooses is no worse than what it chooses next; four are expected.
    drawn = sum(now[-1] < min(later[:-1]) for now, later in itertools.pairwise(rounds))
    assert 2 <= drawn <= 32


def test_single_proposals_before_a_measurement_are_never_random(large: SketchSpace) -> None:
    model = Oracle(COLUMN)
    model.told.append(
        Samples("another", np.empty((0, len(FEATURE_NAMES)), np.float32), np.empty(0))
    )
    search = searcher(large, model)
    scores = [p.predicted or 0.0 for _ in range(24) for p in search.ask(1)]
    rng = np.random.default_rng(1)
    drawn = [large.features(i, large.draw(i, 300, rng)) for i in range(len(large.sketches))]
    assert min(scores) >= np.quantile(np.vstack(drawn)[:, COLUMN], 0.9)


def test_a_model_of_the_job_alone_takes_steps_from_the_best(large: SketchSpace) -> None:
    """The model may be blind to what is faster beside the best: it orders by another feature."""
    other = (COLUMN + 20) % len(FEATURE_NAMES)
    near = {}
    for job_share in (0.0, 1.0):
        search = searcher(large, Oracle(other, job_share))
        trials = measured(search.ask(16))
        search.tell(trials)
        best = [t.candidate for t in sorted(trials, key=lambda trial: trial.best_secs)[:CENTERS]]
        near[job_share] = sum(
            any(_is_one_step(large, p.candidate, center) for center in best) for p in search.ask(16)
        )
    assert near[1.0] >= 8 > 2 * near[0.0]


def _is_one_step(space: SketchSpace, one: Candidate, other: Candidate) -> bool:
    points = [space.point(one), space.point(other)]
    assert points[0] is not None
    assert points[1] is not None
    pairs = zip(points[0].choices, points[1].choices, strict=False)
    return points[0].sketch == points[1].sketch and sum(a != b for a, b in pairs) == 1


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
