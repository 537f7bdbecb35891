"""Random pairs of an operator and one of its schedules for a GPU."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np

from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.target.cuda import CudaTarget
from tests.property.generators.gpu_workloads import GPU_WORKLOADS, ROUND
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task


@dataclass(frozen=True)
class GpuPair:
    """An operator of small shapes, and a random schedule of one of its sketches.

    Attributes:
        operator: The name of the program.
        sketch: The name of the sketch; "default" is the program itself, which lowering binds.
        decisions: The decided numbers of the sketch.
    """

    number: int
    operator: str
    func: PrimFunc
    sketch: str
    decisions: tuple[int, ...]
    schedule: Schedule

    def __str__(self) -> str:
        return f"pair {self.number}: {self.operator}, {self.sketch}, {list(self.decisions)}"


def draw_pair(
    seed: int, number: int, target: CudaTarget, workloads: tuple[str, ...] = ROUND
) -> GpuPair:
    """Return the pair that follows from a seed and a number.

    Args:
        workloads: The names of `GPU_WORKLOADS` to take in turn.
    """
    rng = Random(f"{seed}:{number}")
    func = GPU_WORKLOADS[workloads[number % len(workloads)]](rng.choice)
    operator = func.name
    space = _space(func, target)
    if not space.sketches:
        return GpuPair(number, operator, func, "default", (), Schedule(func))
    index = rng.randrange(len(space.sketches))
    sketch = space.sketches[index]
    (row,) = space.draw(index, 1, np.random.default_rng(rng.getrandbits(32)))
    schedule = sketch.candidate(row).trace.apply_to(func)
    decisions = tuple(sketch.values(row[None])[0].tolist())
    return GpuPair(number, operator, func, sketch.name, decisions, schedule)


@lru_cache(maxsize=256)
def _space(func: PrimFunc, target: CudaTarget) -> SketchSpace:
    return design_space(Task(func, target))
