"""Loops may store past the caches: only whole vectors of what nobody reads there, where aligned."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cpu.codegen.emitters.stores import STREAMS
from compiler.driver import build, emit
from compiler.executor.memory import aligned_empty
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation

TWO_CORES = "cpu -num-cores=2"


def streamed(func: PrimFunc, *, wanted: int = 1, parallel: bool = False) -> PrimFunc:
    """Return an elementwise program in vectors whose outermost loop stores past the caches."""
    schedule = Schedule(func)
    loops = schedule.get_loops(schedule.get_block("B"))
    schedule.vectorize(loops[-1])
    if parallel:
        schedule.parallel(loops[0])
    schedule.annotate(loops[0], STREAMS, wanted)
    return schedule.func


def llvm(func: PrimFunc, num_cores: int = 1) -> str:
    return emit(func, level(3, num_cores)).text


def test_whole_vectors_are_stored_past_the_caches_and_waited_for() -> None:
    text = llvm(streamed(ops.relu(4, 32)))
    streams = [line for line in text.splitlines() if "!nontemporal" in line]
    assert streams
    assert all("align 32" in line for line in streams)
    assert "fence seq_cst" in text


@pytest.mark.parametrize(
    "func",
    [
        streamed(ops.relu(4, 32), wanted=0),
        streamed(ops.relu(4, 33)),
        parse(
            f"""
@T.prim_func
def main(A: T.Buffer((32,), "float32")):
    for i in T.serial(4, annotations={{"{STREAMS}": 1}}):
        for j in T.vectorized(8):
            A[i * 8 + j] = A[i * 8 + j] + T.float32(1)
"""
        ),
    ],
    ids=["not wanted", "rows begin anywhere", "read there"],
)
def test_other_stores_stay(func: PrimFunc) -> None:
    assert "!nontemporal" not in llvm(func)
    check_against_evaluation(func)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("offset", [0, 1, 4, 8])
def test_arrays_may_begin_anywhere(offset: int, parallel: bool) -> None:
    module = build(streamed(ops.relu(40, 64), parallel=parallel), TWO_CORES)
    data = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32)
    room = aligned_empty((40 * 64 + 16,), "float32")
    out = room[offset : offset + 40 * 64].reshape(40, 64)
    room[:] = 7
    module(data, out)
    np.testing.assert_array_equal(out, np.maximum(data, 0))
    assert (room[:offset] == 7).all()
    assert (room[offset + 40 * 64 :] == 7).all()
    module.close()


def test_each_task_waits_for_its_own() -> None:
    text = llvm(streamed(ops.relu(4096, 64), parallel=True), num_cores=2)
    task = text[text.index("define internal void @task0(") :]
    assert "fence seq_cst" in task[: task.index("ret void")]
