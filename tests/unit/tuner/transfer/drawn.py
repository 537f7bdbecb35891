"""Shapes and points of design spaces."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import strategies as st

from compiler.ops.spec import from_spec
from compiler.target.target import Target
from tuner.space.design_space import Point, SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task

ONE_CORE = "cpu -mcpu=x86-64-v3 -num-cores=1"


FOUR_CORES = "cpu -mcpu=x86-64-v3 -num-cores=4"


sizes = st.integers(1, 300)


matmuls = st.builds("matmul:{},{},{}".format, sizes, sizes, sizes)


@cache
def space_of(spec: str, target: str) -> SketchSpace:
    return design_space(Task(from_spec(spec), Target(target)))


def points(space: SketchSpace, num: int, seed: int) -> list[Point]:
    rng = np.random.default_rng(seed)
    drawn = [(i, space.draw(i, num, rng)) for i in range(len(space.sketches))]
    return [Point(i, tuple(row)) for i, rows in drawn for row in rows.tolist()]
