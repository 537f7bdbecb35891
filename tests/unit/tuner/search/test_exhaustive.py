"""Exhaustive search covers a small space, evenly from the first."""

from __future__ import annotations

import numpy as np

from tests.contracts.proposer import new_state
from tuner.search.exhaustive import Exhaustive
from tuner.space.design_space import Point


def all_points(seed: int) -> list[Point]:
    state, exhaustive = new_state(), Exhaustive()
    found: list[Point] = []
    while points := exhaustive.propose(16, state, np.random.default_rng((seed, len(found)))):
        assert state.seen.isdisjoint(points)
        state.seen.update(points)
        found += points
    return found


def test_every_point_comes_once() -> None:
    space = new_state().space
    expected = {
        Point(sketch, tuple(row))
        for sketch in range(len(space.sketches))
        for row in space.enumerate(sketch).tolist()
    }
    found = all_points(0)
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_sketches_have_their_turns() -> None:
    num = len(new_state().space.sketches)
    assert {point.sketch for point in all_points(0)[:num]} == set(range(num))


def test_the_first_points_spread_over_a_sketch() -> None:
    rows = new_state().space.enumerate(0).tolist()
    position = {tuple(row): index for index, row in enumerate(rows)}
    first = [position[p.choices] for p in all_points(1) if p.sketch == 0][:8]
    gaps = np.diff(sorted(first))
    assert gaps.max() <= 3 * len(rows) / 8
