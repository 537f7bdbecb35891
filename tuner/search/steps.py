"""Steps: the points that differ from one in a single knob."""

from __future__ import annotations

import numpy as np

from tuner.search.search_state import SearchState, points_of, rows_of
from tuner.search.variation import one_apart
from tuner.space.design_space import Point, distinct


def points_beside(state: SearchState, center: Point, rng: np.random.Generator) -> list[Point]:
    """Return the legal points that differ from one in a single knob, the most promising first.

    Without a model they come in a random order, in which each knob has its turn.
    """
    points = random_steps(state, center, rng)
    if not state.has_model or not points:
        return points
    width = len(center.choices)
    expected = state.expected(state.space.features(center.sketch, rows_of(points, width)))
    return [points[index] for index in np.argsort(-expected, kind="stable")]


def random_steps(state: SearchState, center: Point, rng: np.random.Generator) -> list[Point]:
    """Return the legal points that differ from one in a single knob; each knob has its turn."""
    sketch = state.space.sketches[center.sketch]
    row = np.array(center.choices, np.int64)
    rows = distinct(state.space.keep(center.sketch, one_apart(sketch, row)))
    return _by_turns(points_of(center.sketch, rows[rng.permutation(len(rows))]), center)


def _by_turns(points: list[Point], center: Point) -> list[Point]:
    """Return points such that each knob that changes has its turn."""
    turns: dict[tuple[bool, ...], int] = {}
    keyed = []
    for index, point in enumerate(points):
        change = tuple(a != b for a, b in zip(point.choices, center.choices, strict=True))
        keyed.append((turns.setdefault(change, 0), index, point))
        turns[change] += 1
    return [point for _, _, point in sorted(keyed, key=lambda entry: entry[:2])]
