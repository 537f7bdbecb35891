"""The shared input of the groups of features of CPUs."""

from __future__ import annotations

from functools import cached_property

from compiler.target.cpu import CpuTarget
from tuner.space.features.groups.batch import CandidateBatch
from tuner.space.features.roofline import Roofline
from tuner.space.tables.knob import Ints
from tuner.space.tables.lane_steps import NO_STEPS
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
    def rooflines(self) -> list[Roofline]:
        """Return the estimated cycles of each nest."""
        steps = self.sketch.lane_steps
        return [
            Roofline(
                tables,
                self.target,
                steps.get(tables.nest.facts.name, NO_STEPS),
                self.values,
            )
            for tables in self.tables
        ]

    def cycles(self, nest: int) -> Floats:
        """Return the estimated cycles of a nest for each point of the main one."""
        total: Floats = self.rooflines[nest].total / self.points
        return total
