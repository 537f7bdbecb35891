"""The shared input of the groups of features of CPUs."""

from __future__ import annotations

from functools import cached_property

from compiler.target.cpu import CpuTarget
from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.features.roofline import Roofline
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats
from tuner.space.tables.register_tile import RegisterTile
from tuner.space.tables.sketch import Sketch


class CpuBatch(CandidateBatch):
    """N candidates of a sketch for a CPU."""

    def __init__(self, sketch: Sketch, choices: Ints, target: CpuTarget) -> None:
        super().__init__(sketch, choices, target)
        self.target = target

    @cached_property
    def tile(self) -> RegisterTile:
        """Return the register tile of the main nest."""
        return RegisterTile(self.main, self.target)

    @cached_property
    def roofline(self) -> Roofline:
        """Return its estimated cycles."""
        return Roofline(self.main, self.target)

    def cycles(self, nest: int) -> Floats:
        """Return the estimated cycles of a nest for each point of the main one."""
        total: Floats = Roofline(self.tables[nest], self.target).total / self.points
        return total
