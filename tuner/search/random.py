"""The strategy that learns nothing: legal candidates, drawn evenly over sketches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.search.strategy import Proposal
from tuner.space.design_space import DesignSpace, Point
from tuner.space.knob import Ints
from tuner.trial import Trial


class RandomStrategy:
    """Proposes random candidates; see `SearchStrategy`."""

    def __init__(self, space: DesignSpace, seed: int) -> None:
        self._space = space
        self._seed = seed
        self._round = 0
        self._measured: set[Point] = set()

    def ask(self, num: int) -> list[Proposal]:
        """Propose up to `num` random candidates that were not told."""
        rng = np.random.default_rng((self._seed, self._round))
        points = draw_points(self._space, num, self._measured, rng)
        return [Proposal(self._space.candidate(p)) for p in points]

    def tell(self, trials: Sequence[Trial]) -> None:
        """End a round; only what was measured is remembered."""
        self._round += 1
        for trial in trials:
            point = self._space.point(trial.candidate)
            if point is not None:
                self._measured.add(point)

    def learned(self) -> None:
        """Return nothing: no model is trained."""


def draw_points(
    space: DesignSpace, num: int, measured: set[Point], rng: np.random.Generator
) -> list[Point]:
    """Draw up to `num` different points that were not measured, evenly over sketches."""
    streams: list[list[Point]] = []
    # In a large space few draws have been measured; in a small one, all may have been.
    for wanted in (num, num + len(measured)):
        streams = [
            [p for p in points_of(i, space.draw(i, wanted, rng)) if p not in measured]
            for i in range(len(space.sketches))
        ]
        if sum(map(len, streams)) >= num:
            break
    found: list[Point] = []
    while len(found) < num and any(streams):
        alive = [s for s in streams if s]
        # A random start, so that over many rounds no sketch is favoured by its place.
        for position in rng.permutation(len(alive)).tolist():
            found.append(alive[position].pop(0))
    return found[:num]


def points_of(sketch: int, rows: Ints) -> list[Point]:
    """Return rows of choices of a sketch as points."""
    return [Point(sketch, tuple(row)) for row in rows.tolist()]
