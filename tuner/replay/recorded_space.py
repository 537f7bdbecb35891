"""The design space of a recorded set: it holds exactly the measured candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.space.design_space import Point, SketchSpace
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch


class RecordedSpace(SketchSpace):
    """Sketches of which some rows are legal: those that were recorded.

    Args:
        rows: By sketch, its legal rows, all different.
    """

    def __init__(self, sketches: Iterable[Sketch], target: Target, rows: Sequence[Ints]) -> None:
        super().__init__(sketches, target)
        self._rows = tuple(rows)

    @cached_property
    def _known(self) -> tuple[frozenset[bytes], ...]:
        return tuple(frozenset(row.tobytes() for row in rows) for rows in self._rows)

    def point(self, candidate: Candidate) -> Point | None:
        """Return the point of a candidate; None if it was not recorded."""
        for index, sketch in enumerate(self.sketches):
            choices = sketch.choices(candidate)
            if choices is not None and np.array(choices, np.int64).tobytes() in self._known[index]:
                return Point(index, choices)
        return None

    def canonical(self, sketch: int, choices: Ints) -> Ints:
        """Return the rows as they are: a recording has each program once."""
        return choices

    def is_small(self, sketch: int) -> bool:
        """Return true: every sketch can be enumerated."""
        return True

    def enumerate(self, sketch: int) -> Ints:
        """Return all rows of a sketch."""
        return self._rows[sketch]

    def keep(self, sketch: int, choices: Ints) -> Ints:
        """Return the rows that were recorded."""
        recorded_rows = self._known[sketch]
        return choices[[row.tobytes() in recorded_rows for row in np.ascontiguousarray(choices)]]

    def draw(self, sketch: int, num: int, rng: np.random.Generator) -> Ints:
        """Draw up to `num` different rows of a sketch, evenly."""
        rows = self._rows[sketch]
        return rows[rng.permutation(len(rows))[:num]]
