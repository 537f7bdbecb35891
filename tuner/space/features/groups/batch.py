"""The shared input of the groups of features of any kind: the tables of a batch of candidates."""

from __future__ import annotations

from functools import cached_property

from compiler.target.target import Target
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats, NestTables
from tuner.space.tables.sketch import Sketch


class CandidateBatch:
    """N candidates of a sketch, as rows of choices. Arrays end in an axis of length N.

    All tables are of the main nest, that with the most arithmetic; sketches without nests have no
    such columns.
    """

    def __init__(self, sketch: Sketch, choices: Ints, target: Target) -> None:
        self.sketch = sketch
        self.choices = choices
        self.num_cores = target.num_cores
        self.values = sketch.values(choices)
        self.tables = [nest.tables(self.values) for nest in sketch.nests]

    def __len__(self) -> int:
        return len(self.choices)

    @property
    def main(self) -> NestTables:
        """Return the tables of the main nest."""
        return self.tables[0]

    @property
    def points(self) -> int:
        """Return the number of runs of its body, without the padding of panels."""
        return self.main.nest.facts.points

    @cached_property
    def bytes(self) -> Floats:
        """Return, by level, the bytes of the lines of all buffers that one run touches."""
        total: Floats = self.main.footprints.sum(axis=0)
        return total

    @cached_property
    def traffic(self) -> Floats:
        """Return, by level, the bytes that all buffers move if one run's footprint is cached."""
        total: Floats = self.main.traffic.sum(axis=0)
        return total
