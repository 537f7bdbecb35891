"""Design spaces for a named CPU."""

from __future__ import annotations

from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from tests.targets import level
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task

LEVEL_3 = level(3)


def space_of(func: PrimFunc, target: CpuTarget = LEVEL_3) -> SketchSpace:
    return design_space(Task(func, target))


def names(func: PrimFunc) -> list[str]:
    return [sketch.name for sketch in space_of(func).sketches]
