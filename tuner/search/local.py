"""Local line search: one knob at a time around the best known points, for the end of a search."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tuner.search.random import draw_points
from tuner.search.search_state import SearchState
from tuner.search.steps import points_beside
from tuner.space.design_space import Point

FIRST_RANDOM = 16
"""Random points before the first line search: one round. Chosen."""
MAX_CENTERS = 8
"""Only so many of the best points are searched around: neighbours of worse ones are no better than
random. Chosen.
"""


class Local:
    """Proposes points that differ in one knob from the best point, then from the second best, etc.

    Among the neighbours of a point, those with the best scores come first; without a model each
    knob has its turn. See `Proposer`.
    """

    uses_model: ClassVar[bool] = True

    def propose(self, num: int, state: SearchState, rng: np.random.Generator) -> list[Point]:
        """Return new neighbours of the best points, and random points if those are too few."""
        points: list[Point] = []
        if len(state.seen) >= FIRST_RANDOM:
            for center in state.ranked()[:MAX_CENTERS]:
                if len(points) >= num:
                    break
                taken = state.seen | set(points)
                points += [p for p in points_beside(state, center, rng) if p not in taken]
        points = points[:num]
        return points + draw_points(state.space, num - len(points), state.seen | set(points), rng)
