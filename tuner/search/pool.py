"""The pool: rows of one sketch with their features, from which a search chooses by prediction.

All rows of a small sketch are in its pool. Of a larger sketch, the pool holds the rows that
evolution found: it begins with random rows, adds children of the best, and drops the worst.
Features are computed once for each row; scores are computed anew, as the model learns.
"""

from __future__ import annotations

import numpy as np

from tuner.cost_model.cost_model import Scores
from tuner.search.search_state import SearchState, points_of, rows_of
from tuner.search.variation import crossed, mutated, selected
from tuner.space.design_space import Point, distinct
from tuner.space.tables.knob import Ints

DRAWN = 384
"""Random rows of the first population of a large sketch. All are ranked before anything is
measured. Chosen: their features take some milliseconds.
"""
LARGEST = 1024
"""Rows that a population keeps. More find better rows, and each is scored anew in each round; the
bound keeps a round's ranking within milliseconds. Chosen.
"""
CHILDREN = 256
"""Children of one generation, before the filter. Chosen: a quarter of the largest population."""
GENERATIONS = 2
"""Generations a round. More of them exploit the current model, which the next round changes.
Chosen.
"""
BESIDE = 8
"""Candidates that are ranked for each requested one, so that those alike can be left out. Chosen.
"""


class Pool:
    """Rows of one sketch; `matrix[i]` are the features of `rows[i]`."""

    def __init__(self, state: SearchState, sketch: int, rng: np.random.Generator) -> None:
        space = state.space
        self.sketch = sketch
        self._is_whole = space.is_small(sketch)
        self.rows = space.enumerate(sketch) if self._is_whole else space.draw(sketch, DRAWN, rng)
        self.matrix = space.features(sketch, self.rows)

    def grow(self, state: SearchState, rng: np.random.Generator) -> None:
        """Evolve the rows of a larger sketch for a few generations, once scores are informative."""
        if self._is_whole or not state.compares_sketches:
            return
        sketch = state.space.sketches[self.sketch]
        self._add(state, rows_of(state.ranked(self.sketch), len(sketch.knobs)))
        if not len(self.rows):
            return
        scores = state.expected(self.matrix)
        for _ in range(GENERATIONS):
            parents = selected(self.rows, scores, CHILDREN, rng)
            children = mutated(sketch, crossed(parents, rng), rng)
            self._add(state, state.space.keep(self.sketch, children))
            fresh = state.expected(self.matrix[len(scores) :])
            scores = np.concatenate([scores, fresh])
        if len(self.rows) > LARGEST:
            best = np.argsort(-scores, kind="stable")[:LARGEST]
            self.rows, self.matrix = self.rows[best], self.matrix[best]

    def best(self, num: int, state: SearchState, prospects: Scores) -> list[tuple[float, Point]]:
        """Return new points with their prospects, the best first: more than `num`, if possible.

        Args:
            prospects: A number for each row; higher is better.
        """
        if not len(self.rows):
            return []
        num_seen = sum(point.sketch == self.sketch for point in state.seen)
        order = np.argsort(-prospects, kind="stable")[: BESIDE * num + num_seen]
        points = points_of(self.sketch, self.rows[order])
        ranked = zip(prospects[order].tolist(), points, strict=True)
        return [(prospect, point) for prospect, point in ranked if point not in state.seen]

    def _add(self, state: SearchState, rows: Ints) -> None:
        every = distinct(np.vstack([self.rows, rows]))
        if len(every) > len(self.rows):
            fresh = state.space.features(self.sketch, every[len(self.rows) :])
            self.rows, self.matrix = every, np.vstack([self.matrix, fresh])
