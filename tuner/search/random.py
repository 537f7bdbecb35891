"""The proposer without a model: legal candidates, drawn evenly over sketches."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import ClassVar

import numpy as np

from tuner.search.search_state import SearchState, points_of
from tuner.space.design_space import Point, SketchSpace

_AHEAD = 128
"""Points of a sketch that are drawn together, for several rounds: the filter takes as long for some
as for many. Chosen.
"""


class Random:
    """Proposes random points; see `Proposer`."""

    uses_model: ClassVar[bool] = False

    def __init__(self) -> None:
        self._streams: list[list[Point]] = []

    def propose(self, num: int, state: SearchState, rng: np.random.Generator) -> list[Point]:
        """Draw points that are new."""
        space = state.space
        self._streams = self._streams or [[] for _ in space.sketches]
        for sketch, stream in enumerate(self._streams):
            stream[:] = [point for point in stream if point not in state.seen]
            if len(stream) < num:
                drawn = points_of(sketch, space.draw(sketch, max(num, _AHEAD), rng))
                streamed = set(stream)
                stream += [p for p in drawn if p not in streamed and p not in state.seen]
        points = _by_turns(self._streams, num, rng)
        if len(points) < num:
            points += draw_points(space, num - len(points), state.seen.union(points), rng)
        return points


def draw_points(
    space: SketchSpace, num: int, seen: AbstractSet[Point], rng: np.random.Generator
) -> list[Point]:
    """Draw up to `num` different points that were not seen, evenly over sketches."""
    if not num:
        return []
    streams: list[list[Point]] = []
    # In a large space few draws have been seen; in a small one, all may have been.
    for num_drawn in (num, num + len(seen)):
        streams = [
            [p for p in points_of(i, space.draw(i, num_drawn, rng)) if p not in seen]
            for i in range(len(space.sketches))
        ]
        if sum(map(len, streams)) >= num:
            break
    return _by_turns(streams, num, rng)


def _by_turns(streams: list[list[Point]], num: int, rng: np.random.Generator) -> list[Point]:
    """Take up to `num` points from streams, evenly."""
    points: list[Point] = []
    while len(points) < num and any(streams):
        alive = [s for s in streams if s]
        # A random start, so that over many rounds no sketch is favoured by its place.
        for position in rng.permutation(len(alive)).tolist()[: num - len(points)]:
            points.append(alive[position].pop(0))
    return points
