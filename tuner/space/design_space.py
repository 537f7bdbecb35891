"""The design space of a task: its sketches, drawn from and scored as tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from compiler.target import Target
from tuner.candidate import Candidate
from tuner.space.features import FeatureMatrix, features
from tuner.space.knob import Ints
from tuner.space.sketch import Sketch
from tuner.space.static_filter import passes

SMALL = 1 << 15
"""A sketch of at most so many candidates is enumerated rather than drawn from."""
MAX_DRAWS = 32


@dataclass(frozen=True)
class Point:
    """A candidate as the search handles it: a sketch by its index, and a choice for each knob."""

    sketch: int
    choices: tuple[int, ...]


class DesignSpace:
    """The sketches of a task on its target."""

    def __init__(self, sketches: Iterable[Sketch], target: Target) -> None:
        self.sketches = tuple(sketches)
        self.target = target
        self._small: dict[int, Ints] = {}

    def candidate(self, point: Point) -> Candidate:
        """Return the candidate that a point stands for."""
        return self.sketches[point.sketch].candidate(point.choices)

    def point(self, candidate: Candidate) -> Point | None:
        """Return the point that stands for a candidate, None if it is outside the space."""
        for index, sketch in enumerate(self.sketches):
            choices = sketch.choices(candidate)
            if choices is not None:
                return Point(index, choices)
        return None

    def features(self, sketch: int, choices: Ints) -> FeatureMatrix:
        """Return the features of rows of choices of a sketch."""
        return features(self.sketches[sketch], choices, self.target)

    def canonical(self, sketch: int, choices: Ints) -> Ints:
        """Return, for each row, the row that stands for all those of the same program."""
        return choices

    def enumerate(self, sketch: int) -> Ints:
        """Return all rows of a small sketch that pass the filter; see `SMALL`."""
        return self._enumerated(sketch)

    def keep(self, sketch: int, choices: Ints) -> Ints:
        """Return the rows that pass the static filter."""
        return choices[passes(self.sketches[sketch], choices, self.target)]

    def draw(self, sketch: int, num: int, rng: np.random.Generator) -> Ints:
        """Draw up to `num` different rows of a sketch that pass the filter, evenly.

        Fewer come back if the sketch holds fewer, or if they are too rare to be found.
        """
        if self.sketches[sketch].size <= SMALL:
            rows = self._enumerated(sketch)
            return rows[rng.permutation(len(rows))[:num]]
        found = np.empty((0, len(self.sketches[sketch].knobs)), np.int64)
        for _ in range(MAX_DRAWS):
            drawn = self.keep(sketch, self.sketches[sketch].draw(max(4 * num, 256), rng))
            found = distinct(np.vstack([found, drawn]))
            if len(found) >= num:
                break
        return found[:num]

    def _enumerated(self, sketch: int) -> Ints:
        if sketch not in self._small:
            sizes = self.sketches[sketch].num_options
            every = np.indices(tuple(sizes.tolist())).reshape(len(sizes), -1).T.astype(np.int64)
            self._small[sketch] = self.keep(sketch, every.reshape(-1, len(sizes)))
        return self._small[sketch]


def distinct(rows: Ints) -> Ints:
    """Return the different rows, each where it occurs first."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]
