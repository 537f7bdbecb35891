"""Simulated annealing on measured times, many chains at once (Kirkpatrick et al., Science 1983)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tuner.search.random import draw_points
from tuner.search.search_state import SearchState
from tuner.search.steps import points_beside
from tuner.space.design_space import Point

HOT = 0.5
"""The first temperature: a step to a candidate 1.65 times slower has a chance of 1/e.

Chosen, not measured.
"""
COOLING = 0.97
"""Factor of the temperature for each measured step; chosen, not measured."""


class Annealing:
    """Moves chains by steps of one knob; see `Proposer`.

    There are as many chains as proposals in the first round; they begin at the best measured points
    if there are any. Each proposal is a step of one chain,
    which is accepted or rejected when its time is known. With a model a chain tries the most
    promising step first, without one a random step.
    """

    uses_model: ClassVar[bool] = True

    def __init__(self) -> None:
        self._chains: list[Point] = []
        self._steps: dict[Point, int] = {}
        self._temperature = HOT
        self._turn = 0

    def propose(self, num: int, state: SearchState, rng: np.random.Generator) -> list[Point]:
        """Return steps of the next chains; random points for chains without a step."""
        self._settle(state, rng)
        if not self._chains:
            self._chains = state.ranked()[:num]
        if not self._chains:
            self._chains = draw_points(state.space, num, state.seen, rng)
            return list(self._chains)
        points: list[Point] = []
        for _ in range(min(num, len(self._chains))):
            self._turn = (self._turn + 1) % len(self._chains)
            taken = state.seen | set(points)
            steps = points_beside(state, self._chains[self._turn], rng)
            step = next((point for point in steps if point not in taken), None)
            if step is not None:
                self._steps[step] = self._turn
                points.append(step)
        return points + draw_points(state.space, num - len(points), state.seen | set(points), rng)

    def _settle(self, state: SearchState, rng: np.random.Generator) -> None:
        """Accept, among the measured steps, those that pay and those that chance accepts."""
        for point in [point for point in self._steps if point in state.secs]:
            chain = self._steps.pop(point)
            before = state.secs.get(self._chains[chain], np.inf)
            loss = np.log(state.secs[point] / before) if np.isfinite(before) else -np.inf
            if rng.random() < np.exp(-max(loss, 0.0) / self._temperature):
                self._chains[chain] = point
            self._temperature *= COOLING
