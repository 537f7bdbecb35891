"""The design space of a task: its sketches, whose candidates are sampled and scored as tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.space.registry import search_space_of
from tuner.space.search_space import FeatureMatrix
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

SMALL = 1 << 15
"""A sketch of at most this many candidates is enumerated; a larger one is sampled. It trades exact
ranking for time and memory. Chosen.
"""
MAX_DRAWS = 32
"""Draws after which fewer distinct rows than requested are accepted. It bounds the time for a
sketch in which almost all rows fail the filter. Chosen.
"""
NUM_RANKED = 256
"""Sampled decisions of each sketch among which the estimate of a candidate is ranked. The standard
error of a rank is then below 0.03, and the features of a sample take some milliseconds. Chosen.
"""
NUM_COUNTED = 8192
"""Sampled decisions for the estimate of a count; the standard error of a share is then below 0.6%.
"""


@dataclass(frozen=True, slots=True)
class Point:
    """A candidate as the search handles it: a sketch by its index, and a choice for each knob."""

    sketch: int
    choices: tuple[int, ...]


@dataclass(frozen=True)
class Count:
    """The number of points, and whether it was counted or estimated."""

    number: int
    is_exact: bool


class SketchSpace:
    """The sketches of a task on its target."""

    def __init__(self, sketches: Iterable[Sketch], target: Target) -> None:
        self.sketches = tuple(sketches)
        self.target = target
        self.search_space = search_space_of(target)
        self._small: dict[int, Ints] = {}

    def without(self, dropped: Collection[int]) -> SketchSpace:
        """Return the space without some sketches; keep the cached rows of the others."""
        retained = [index for index in range(len(self.sketches)) if index not in dropped]
        space = SketchSpace([self.sketches[index] for index in retained], self.target)
        space._small = {n: self._small[i] for n, i in enumerate(retained) if i in self._small}
        return space

    def candidate(self, point: Point) -> Candidate:
        """Return the candidate of a point."""
        return self.sketches[point.sketch].candidate(point.choices)

    def point(self, candidate: Candidate) -> Point | None:
        """Return the point of a candidate; None if it is outside the space."""
        return self.points([candidate])[0]

    def points(self, candidates: Sequence[Candidate]) -> list[Point | None]:
        """Return the point of each candidate; None for those outside the space."""
        points: list[Point | None] = [None] * len(candidates)
        for index, sketch in enumerate(self.sketches):
            chosen = {
                number: choices
                for number, candidate in enumerate(candidates)
                if points[number] is None and (choices := sketch.choices(candidate)) is not None
            }
            if chosen:
                rows = sketch.canonical(np.array(list(chosen.values()), np.int64))
                for number, row in zip(chosen, rows.tolist(), strict=True):
                    points[number] = Point(index, tuple(row))
        return points

    def features(self, sketch: int, choices: Ints) -> FeatureMatrix:
        """Return the features of rows of choices of a sketch."""
        matrix = self.search_space.features(self.sketches[sketch], choices, self.target)
        if not self.search_space.estimate_parts:
            return matrix
        totals, sampled = self._totals(sketch, matrix), self._sampled_totals
        ranks = np.searchsorted(sampled, totals) / max(len(sampled), 1)
        ratios = totals - sampled[0] if len(sampled) else np.zeros_like(totals)
        return np.column_stack([matrix, ratios, ranks.astype(np.float32)])

    @cached_property
    def _sampled_totals(self) -> FeatureMatrix:
        """Return the sorted estimates of a fixed sample of the space.

        It depends on the sketches alone, so a candidate has the same rank in any batch.
        """
        totals = [
            self._totals(
                index,
                self.search_space.features(
                    sketch, sketch.draw(NUM_RANKED, np.random.default_rng(0)), self.target
                ),
            )
            for index, sketch in enumerate(self.sketches)
        ]
        return np.sort(np.concatenate(totals))

    def _totals(self, sketch: int, matrix: FeatureMatrix) -> FeatureMatrix:
        """Return the base-2 logarithm of the estimate of each row, for the whole candidate.

        Columns are for a point of the main nest. Sketches of a task differ in their points:
        Winograd's products have fewer than a convolution.
        """
        nests = self.sketches[sketch].nests
        points = nests[0].facts.points if nests else 1
        totals: FeatureMatrix = self.search_space.total_estimates(matrix)
        totals += np.float32(np.log2(points))
        return totals

    def canonical(self, sketch: int, choices: Ints) -> Ints:
        """Return, for each row, the canonical row of all rows of the same program."""
        return self.sketches[sketch].canonical(choices)

    def keep(self, sketch: int, choices: Ints) -> Ints:
        """Return the canonical rows of those that pass the static filter.

        Different rows may become one; programs that another sketch contains are left out.
        """
        rows = self.canonical(
            sketch, choices[self.search_space.passes(self.sketches[sketch], choices, self.target)]
        )
        return rows[self.sketches[sketch].is_representative(rows)]

    def draw(self, sketch: int, num: int, rng: np.random.Generator) -> Ints:
        """Draw up to `num` different rows of a sketch, all points with equal probability.

        Rows are drawn evenly over all decisions, and rejected if they do not pass the filter or are
        not canonical. The result is shorter if the sketch has fewer rows, or if they are too rare.
        """
        if self.is_small(sketch):
            rows = self.enumerate(sketch)
            return rows[rng.permutation(len(rows))[:num]]
        unique = np.empty((0, len(self.sketches[sketch].knobs)), np.int64)
        for _ in range(MAX_DRAWS):
            drawn = self.sketches[sketch].draw(max(4 * num, 256), rng)
            # Few rows may be enough; a call of the filter takes as long as some hundred rows in it.
            for part in np.split(drawn, _doubled(4 * max(1, num), len(drawn))):
                rows = self._representatives(sketch, part)
                unique = distinct(np.vstack([unique, rows]))
                if len(unique) >= num:
                    return unique[:num]
        return unique

    def is_small(self, sketch: int) -> bool:
        """Return whether a sketch can be enumerated."""
        return self.sketches[sketch].size <= SMALL

    def enumerate(self, sketch: int) -> Ints:
        """Return all points of a small sketch, as rows.

        Raises:
            ValueError: If the sketch has more than `SMALL` decisions.
        """
        if not self.is_small(sketch):
            size = self.sketches[sketch].size
            raise ValueError(f"sketch {sketch} has {size} decisions, more than {SMALL}: sample it")
        if sketch not in self._small:
            sizes = self.sketches[sketch].num_options
            every = np.indices(tuple(sizes.tolist())).reshape(len(sizes), -1).T.astype(np.int64)
            self._small[sketch] = self._representatives(sketch, every.reshape(-1, len(sizes)))
        return self._small[sketch]

    def count(self, sketch: int) -> Count:
        """Return the number of points of a sketch: counted if it is small, else estimated.

        An estimate is the number of decisions times the share of points in a sample.
        """
        table = self.sketches[sketch]
        if self.is_small(sketch):
            return Count(len(self.enumerate(sketch)), is_exact=True)
        drawn = table.draw(NUM_COUNTED, np.random.default_rng(0))
        share = len(self._representatives(sketch, drawn)) / len(drawn)
        return Count(round(table.size * share), is_exact=False)

    def _representatives(self, sketch: int, choices: Ints) -> Ints:
        table = self.sketches[sketch]
        rows = choices[self.search_space.passes(table, choices, self.target)]
        return rows[table.is_representative(rows)]


def _doubled(first: int, end: int) -> list[int]:
    """Return where parts of rows begin, each as long as all before it."""
    starts = []
    while first < end:
        starts.append(first)
        first *= 2
    return starts


def distinct(rows: Ints) -> Ints:
    """Return the different rows, each at its first position."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]
