"""The size of the design space of an operator on a named CPU."""

from __future__ import annotations

from typing import NamedTuple

import loopwright as lw
from tuner.space.generate import design_space
from tuner.task import Task


class SpaceSize(NamedTuple):
    """The numbers of sketches and of schedules; a large number is an estimate."""

    sketches: int
    schedules: int


def space_size(spec: str, cpu: str) -> SpaceSize:
    """Return the size of the space of an operator on one core of a CPU."""
    space = design_space(Task(lw.ops.from_spec(spec), lw.Target(f"cpu -mcpu={cpu} -num-cores=1")))
    numbers = [space.count(index).number for index in range(len(space.sketches))]
    return SpaceSize(len(numbers), sum(numbers))
