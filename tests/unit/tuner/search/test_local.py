"""Line search: one knob at a time around the best point."""

from __future__ import annotations

import numpy as np

from tests.contracts.proposer import new_state
from tuner.search.local import FIRST_RANDOM, Local
from tuner.search.random import draw_points
from tuner.search.steps import points_beside


def test_points_beside_differ_in_one_knob_and_each_knob_has_its_turn() -> None:
    state = new_state()
    (center,) = draw_points(state.space, 1, set(), np.random.default_rng(0))
    beside = points_beside(state, center, np.random.default_rng(1))
    changed = [
        [i for i, (a, b) in enumerate(zip(p.choices, center.choices, strict=True)) if a != b]
        for p in beside
    ]
    assert all(len(knobs) == 1 for knobs in changed)
    assert len(beside) == len(set(beside))
    knobs = {knob for (knob,) in changed}
    assert {knob for (knob,) in changed[: len(knobs)]} == knobs


def test_the_best_points_are_the_centers() -> None:
    state = new_state()
    points = draw_points(state.space, FIRST_RANDOM, set(), np.random.default_rng(0))
    state.seen.update(points)
    state.secs |= {point: 1.0 + index for index, point in enumerate(points)}
    (step,) = Local().propose(1, state, np.random.default_rng(2))
    best = points[0]
    assert step.sketch == best.sketch
    assert sum(a != b for a, b in zip(step.choices, best.choices, strict=True)) == 1


def test_the_first_round_is_random() -> None:
    state = new_state()
    rng = np.random.default_rng(5)
    assert Local().propose(8, state, rng) == draw_points(
        state.space, 8, set(), np.random.default_rng(5)
    )
