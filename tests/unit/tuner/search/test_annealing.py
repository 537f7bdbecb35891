"""Chains of simulated annealing on times that follow from the choices."""

from __future__ import annotations

import numpy as np

from tests.contracts.proposer import new_state
from tuner.search.annealing import Annealing
from tuner.search.search_state import SearchState
from tuner.space.design_space import Point, SketchSpace


def secs(point: Point) -> float:
    return 1e-3 * (1 + point.sketch + sum(point.choices))


def test_chains_take_steps_of_one_knob(space: SketchSpace) -> None:
    state, annealing = SearchState(space, None, "task"), Annealing()
    first = annealing.propose(4, state, np.random.default_rng(0))
    state.seen.update(first)
    state.secs |= {point: secs(point) for point in first}
    steps = annealing.propose(4, state, np.random.default_rng(1))
    for chain, step in zip([*first[1:], first[0]], steps, strict=True):
        assert step.sketch == chain.sketch
        assert sum(a != b for a, b in zip(step.choices, chain.choices, strict=True)) == 1


def test_chains_go_down(space: SketchSpace) -> None:
    state, annealing = SearchState(space, None, "task"), Annealing()
    for turn in range(40):
        points = annealing.propose(8, state, np.random.default_rng(turn))
        state.seen.update(points)
        state.secs |= {point: secs(point) for point in points}
    first = list(state.secs.values())[:8]
    last = [state.secs[chain] for chain in annealing._chains]
    assert np.median(last) < np.median(first)


def test_points_that_failed_are_left() -> None:
    state, annealing = new_state(), Annealing()
    first = annealing.propose(2, state, np.random.default_rng(0))
    state.seen.update(first)
    state.secs |= dict.fromkeys(first, np.inf)
    steps = annealing.propose(2, state, np.random.default_rng(1))
    state.seen.update(steps)
    state.secs |= dict.fromkeys(steps, 1.0)
    annealing.propose(2, state, np.random.default_rng(2))
    assert set(steps) <= set(annealing._chains)
