"""The proposer without a model: legal candidates, drawn evenly over sketches."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import ClassVar

import numpy as np

from tuner.search.search_state import SearchState, points_of
from tuner.space.design_space import Point, SketchSpace


class Random:
    """Proposes random points; see `Proposer`."""

    uses_model: ClassVar[bool] = False

    def propose(self, num: int, state: SearchState, rng: np.random.Generator) -> list[Point]:
        """Draw points that are new."""
        return draw_points(state.space, num, state.seen, rng)


def draw_points(
    space: SketchSpace, num: int, seen: AbstractSet[Point], rng: np.random.Generator
) -> list[Point]:
    """Draw up to `num` different points that were not seen, evenly over sketches."""
    streams: list[list[Point]] = []
    # In a large space few draws have been seen; in a small one, all may have been.
    for num_drawn in (num, num + len(seen)):
        streams = [
            [p for p in points_of(i, space.draw(i, num_drawn, rng)) if p not in seen]
            for i in range(len(space.sketches))
        ]
        if sum(map(len, streams)) >= num:
            break
    points: list[Point] = []
    while len(points) < num and any(streams):
        alive = [s for s in streams if s]
        # A random start, so that over many rounds no sketch is favoured by its place.
        for position in rng.permutation(len(alive)).tolist():
            points.append(alive[position].pop(0))
    return points[:num]
