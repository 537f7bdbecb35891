"""The pool: rows of one sketch with their features, from which a search chooses by prediction.

All rows of a small sketch are in its pool. Of a larger sketch, the pool holds the rows that
evolution found: it begins with random rows, adds children of the best, and drops the worst.
Features are computed once for each row; scores are computed anew, as the model learns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.cost_model.cost_model import Scores
from tuner.search.search_state import SearchState, points_of, rows_of
from tuner.search.variation import crossed, mutated, selected
from tuner.space.design_space import Point, distinct
from tuner.space.search_space import FeatureMatrix
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
    """Rows of one sketch.

    Attributes:
        matrix: The features of each row.
        start: What the model started from says of each row.
        scores, uncertainty: What was expected of each row when the pool was last grown.
    """

    def __init__(self, state: SearchState, sketch: int, rng: np.random.Generator) -> None:
        space = state.space
        self.sketch = sketch
        self._is_whole = space.is_small(sketch)
        self.rows = space.enumerate(sketch) if self._is_whole else space.draw(sketch, DRAWN, rng)
        self.matrix = space.features(sketch, self.rows)
        self.start = state.start_scores(self.matrix)
        self.scores = self.uncertainty = np.empty(0)

    def add_measured(self, state: SearchState) -> None:
        """Add the correct rows that were measured; forget all scores, which are out of date."""
        self.scores = self.uncertainty = np.empty(0)
        if not self._is_whole:
            width = len(state.space.sketches[self.sketch].knobs)
            self._add(state, rows_of(state.ranked(self.sketch), width))

    def add_children(self, state: SearchState, rng: np.random.Generator) -> None:
        """Add a generation of a larger sketch: children of the rows with the best scores."""
        if self._is_whole or not len(self.rows):
            return
        parents = selected(self.rows, self.scores, CHILDREN, rng)
        children = mutated(state.space.sketches[self.sketch], crossed(parents, rng), rng)
        self._add(state, state.space.keep(self.sketch, children))

    def drop_worst(self) -> None:
        """Shrink a larger sketch to `LARGEST` rows."""
        if self._is_whole or len(self.rows) <= LARGEST:
            return
        best = np.argsort(-self.scores, kind="stable")[:LARGEST]
        self.rows, self.matrix, self.start = self.rows[best], self.matrix[best], self.start[best]
        self.scores, self.uncertainty = self.scores[best], self.uncertainty[best]

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


def grow(pools: Sequence[Pool], state: SearchState, rng: np.random.Generator) -> None:
    """Evolve the pools for a few generations, and score all rows; scores must be informative."""
    for pool in pools:
        pool.add_measured(state)
    _score_new(pools, state)
    for _ in range(GENERATIONS):
        for pool in pools:
            pool.add_children(state, rng)
        _score_new(pools, state)
    for pool in pools:
        pool.drop_worst()


def _score_new(pools: Sequence[Pool], state: SearchState) -> None:
    """Score the rows without a score, of all pools together: a call reads the whole model."""
    unknown = [pool.matrix[len(pool.start) :] for pool in pools]
    if any(map(len, unknown)):
        starts = state.start_scores(np.vstack(unknown))
        for pool, start in zip(pools, _split(starts, unknown), strict=True):
            pool.start = np.vstack([pool.start, start])
    unscored = [pool.matrix[len(pool.scores) :] for pool in pools]
    if any(map(len, unscored)):
        starts = np.vstack([pool.start[len(pool.scores) :] for pool in pools])
        scores, uncertainty = state.outlook(np.vstack(unscored), starts)
        for pool, more in zip(pools, _split(scores, unscored), strict=True):
            pool.scores = np.concatenate([pool.scores, more])
        for pool, more in zip(pools, _split(uncertainty, unscored), strict=True):
            pool.uncertainty = np.concatenate([pool.uncertainty, more])


def _split(scores: Scores, parts: Sequence[FeatureMatrix]) -> list[Scores]:
    """Split scores of rows that were stacked into those of each part."""
    return np.split(scores, np.cumsum([len(part) for part in parts])[:-1])
