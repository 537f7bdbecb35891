"""Any program runs on a GPU: unbound loops are bound as far as their iterations are independent."""

from __future__ import annotations

import pytest

from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ops.spec import from_spec
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.ops.specs import SPECS
from tests.unit.compiler.passes.device.checked_lowering import LIMITS, lower_checked

RUN = (
    *("matmul:4,5,6,bias=true,activation=gelu", "softmax:4,9", "softmax:7", "cumsum:3,5,axis=0"),
    *("argmax:3,4,5,axis=1", "take:6,4,indices=5", "layer_norm:4,9", "concat:2,3", "mean:3,4"),
)


@pytest.mark.parametrize("spec", SPECS)
def test_every_operator_becomes_kernels_of_many_threads(spec: str) -> None:
    program = lower_for_device(from_spec(spec), LIMITS)
    # A normalization of a vector has scalars that one thread computes; so is the scan of a vector.
    is_alone = spec == "cumsum:9"
    assert any(kernel.axes for kernel in program.kernels) != is_alone


@pytest.mark.parametrize("spec", RUN)
def test_bound_operators_compute_the_same(spec: str) -> None:
    func = from_spec(spec)
    lower_checked(func, interpret(func, random_inputs(func, 0)))


def test_large_nests_are_split_over_blocks_of_256_threads() -> None:
    (kernel,) = lower_for_device(from_spec("add:100,101"), LIMITS).kernels
    assert (kernel.grid, kernel.block) == ((40, 1, 1), (256, 1, 1))


def test_small_nests_are_one_block() -> None:
    (kernel,) = lower_for_device(from_spec("add:3,4"), LIMITS).kernels
    assert (kernel.grid, kernel.block) == ((1, 1, 1), (12, 1, 1))


@pytest.mark.parametrize(
    ("spec", "threads"), [("sum:5000", 1024), ("max:9,10", 128), ("argmax:3,4", 32)]
)
def test_threads_of_one_block_reduce_everything_together(spec: str, threads: int) -> None:
    func = from_spec(spec)
    first, *_ = lower_checked(func, interpret(func, random_inputs(func, 0))).kernels
    assert (first.grid, first.block) == ((1, 1, 1), (threads, 1, 1))


def test_reductions_stay_in_the_thread_though_their_loop_is_outermost() -> None:
    sch = Schedule(from_spec("matmul:4,5,6"))
    i, j, k = sch.get_loops(sch.get_block("C"))
    sch.reorder(k, i, j)
    (kernel,) = lower_checked(sch.func).kernels
    assert kernel.block == (20, 1, 1)


STEPS = """
@T.prim_func
def main(X: T.Buffer(({n}, 8), "float32"), Y: T.Buffer(({n}, 8), "float32")):
    for t in range({n}):
        for i in range(8):
            with T.block("copy"):
                vt = T.axis.scan({n}, t)
                vi = T.axis.spatial(8, i)
                Y[vt, vi] = T.if_then_else(0 < vt, Y[T.max(vt - 1, 0), vi], 0.0) + X[vt, vi]
        for i in range(8):
            with T.block("mix"):
                vt = T.axis.scan({n}, t)
                vi = T.axis.spatial(8, i)
                Y[vt, vi] = Y[vt, vi] * 2.0 + X[vt, 7 - vi]
"""


def test_steps_of_a_recurrence_are_launches() -> None:
    program = lower_checked(parse(STEPS.format(n=3)))
    assert [kernel.block for kernel in program.kernels] == [(8, 1, 1), (8, 1, 1)]
    assert [launch.scalars for launch in program.launches] == [(0,), (0,), (1,), (1,), (2,), (2,)]


def test_a_recurrence_of_too_many_steps_is_the_work_of_one_thread() -> None:
    program = lower_for_device(parse(STEPS.format(n=5000)), LIMITS)
    assert [kernel.block for kernel in program.kernels] == [(1, 1, 1)]
    assert len(program.launches) == 1


def test_schedules_for_cpus_run_too() -> None:
    sch = Schedule(from_spec("matmul:8,8,8,activation=relu"))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i_outer, i_inner = sch.split(i, [None, 4])
    j_outer, j_inner = sch.split(j, [None, 4])
    sch.reorder(i_outer, j_outer, k, i_inner, j_inner)
    sch.parallel(i_outer)
    sch.unroll(i_inner)
    sch.vectorize(j_inner)
    copy = sch.cache_read(block, 1, "global")
    sch.compute_at(copy, j_outer)
    sch.decompose_reduction(block, k)
    lower_checked(sch.func)


def test_a_factored_reduction_runs_too() -> None:
    sch = Schedule(from_spec("sum:6,16,axis=1"))
    block = sch.get_block("B")
    _, k = sch.get_loops(block)
    _, inner = sch.split(k, [None, 4])
    sch.rfactor(inner, 0)
    program = lower_checked(sch.func)
    assert all(kernel.axes for kernel in program.kernels)
