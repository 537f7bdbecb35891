"""Exhaustive search of small spaces, in an order that covers them evenly from the first."""

from __future__ import annotations

from math import gcd
from typing import ClassVar

import numpy as np

from tuner.search.random import draw_points
from tuner.search.search_state import SearchState, points_of
from tuner.space.design_space import Point

GOLDEN = 0.618033988749895
"""The golden ratio: its multiples fill an interval evenly (Weyl's low-discrepancy sequence)."""


class Exhaustive:
    """Proposes all candidates of each small sketch, in turns of sketches; see `Proposer`.

    The next point of a sketch is a golden section further, so that any number of them is spread
    over the grid. The seed determines the first one. Random points of sketches that are too large
    come last.
    """

    uses_model: ClassVar[bool] = False

    def __init__(self) -> None:
        self._left: list[Point] | None = None

    def propose(self, num: int, state: SearchState, rng: np.random.Generator) -> list[Point]:
        """Return the next points of the grid."""
        if self._left is None:
            self._left = _grid(state, rng)
        fresh = [point for point in self._left if point not in state.seen]
        chosen, self._left = fresh[:num], fresh[num:]
        return chosen + draw_points(state.space, num - len(chosen), state.seen | set(chosen), rng)


def _grid(state: SearchState, rng: np.random.Generator) -> list[Point]:
    space = state.space
    small = [sketch for sketch in range(len(space.sketches)) if space.is_small(sketch)]
    lists = []
    for sketch in small:
        rows = space.enumerate(sketch)
        lists.append(points_of(sketch, rows[_order(len(rows), rng)]))
    longest = max(map(len, lists), default=0)
    return [points[turn] for turn in range(longest) for points in lists if turn < len(points)]


def _order(num: int, rng: np.random.Generator) -> list[int]:
    step = max(1, round(num * GOLDEN))
    while gcd(step, max(num, 1)) > 1:
        step += 1
    first = int(rng.integers(max(num, 1)))
    return [(first + index * step) % num for index in range(num)]
