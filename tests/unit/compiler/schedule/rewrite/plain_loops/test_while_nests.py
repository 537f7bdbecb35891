"""Blocks of plain loops around a `while`, and what schedules and backends refuse."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.nodes import Block
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.script import parse

ROUNDED_UP = """
@T.prim_func
def main(A: T.Buffer((8, 16), "int32"), B: T.Buffer((8, 16), "int32")):
    for i, j in T.grid(8, 16):
        x: T.int32 = 1
        while x < A[i, j]:
            x *= 2
        B[i, j] = x
"""

CARRIED = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    x: T.int32 = 1
    for i in range(8):
        while x < A[i]:
            x *= 2
        B[i] = x
"""

BLOCK_INSIDE = """
@T.prim_func
def main(A: T.Buffer((8,), "int32")):
    while A[0] < 9:
        for i in range(8):
            with T.sblock("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + 1
"""


def kinds(schedule: Schedule, name: str) -> list[str]:
    block = next(b for b in walk(schedule.func.body) if isinstance(b, Block) and b.name == name)
    return [iter_var.kind for iter_var in block.iter_vars]


def test_independent_iterations_may_be_scheduled() -> None:
    schedule = Schedule(parse(ROUNDED_UP))
    assert kinds(schedule, "B") == ["spatial", "spatial"]
    i, j = schedule.get_loops("B")
    outer, inner = schedule.split(j, factors=[4, None])
    schedule.reorder(outer, i, inner)
    schedule.parallel(outer)
    schedule.vectorize(inner)
    numbers = np.random.default_rng(0).integers(1, 500, (8, 16)).astype("int32")
    powers = np.empty_like(numbers)
    build(schedule, "cpu -num-cores=2")(numbers, powers)
    np.testing.assert_array_equal(powers, 2 ** np.ceil(np.log2(numbers)).astype("int32"))


def test_iterations_that_use_earlier_values_stay_in_order() -> None:
    schedule = Schedule(parse(CARRIED))
    assert kinds(schedule, "B") == ["opaque"]
    (i,) = schedule.get_loops("B")
    with pytest.raises(ScheduleError, match="opaque"):
        schedule.parallel(i)
    numbers = np.array([3, 1, 9, 2, 40, 5, 6, 7], "int32")
    powers = np.empty_like(numbers)
    build(schedule, "cpu -num-cores=1")(numbers, powers)
    assert powers.tolist() == [4, 4, 16, 16, 64, 64, 64, 64]


def test_blocks_in_a_while_are_not_scheduled() -> None:
    func = parse(BLOCK_INSIDE)
    with pytest.raises(ScheduleError, match="whose number of runs is unknown: put it into a block"):
        Schedule(func)
    counters = np.arange(8, dtype="int32")
    build(func, "cpu -num-cores=1")(counters)
    np.testing.assert_array_equal(counters, np.arange(8) + 9)


def test_threads_and_gpus_refuse_it() -> None:
    schedule = Schedule(parse(ROUNDED_UP))
    with pytest.raises(BuildError, match="compiled for CPUs only"):
        build(schedule, "cuda -arch=sm_90a")
    schedule.bind(schedule.get_loops("B")[0], "threadIdx.x")
    with pytest.raises(BuildError, match="can't run in programs with loops of threads"):
        build(schedule, "cpu -num-cores=1")
