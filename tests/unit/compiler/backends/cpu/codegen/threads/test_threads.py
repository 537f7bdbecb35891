"""Parallel loops: what runs on threads is what the program says, and each iteration runs once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops, te
from compiler.backends.cpu.codegen import instruction_estimate
from compiler.backends.cpu.codegen.machine_code import compile_object, disassemble, verify_module
from compiler.backends.cpu.codegen.threads.dynamic_partition import dynamic_launch_runtime
from compiler.backends.cpu.codegen.threads.thread_pool import thread_pool
from compiler.backends.error import BuildError
from compiler.driver import build, emit
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.ir.text.printer import script
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from compiler.target.cpu import CpuTarget
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.emitters.test_statements import fuse_rows
from tests.unit.compiler.backends.cpu.codegen.programs import mark

RNG = np.random.default_rng(3)

# Each row has one more element than the one before it.
TRIANGLE = """\
@T.prim_func
def triangle(A: T.Buffer((90, 90), "float32"), B: T.Buffer((90,), "float32")):
    for i in {loop}:
        for j in range(90):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SR", [i, j])
                T.where(j <= i)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj]
"""
# What runs twice, or not at all, is seen.
ADD_ONE = """\
@T.prim_func
def add_one(B: T.Buffer(({extent},), "int32")):
    for i in T.parallel({extent}, annotations={{"dynamic_partition": {step}}}):
        with T.sblock("B"):
            v = T.axis.spatial({extent}, i)
            B[v] = B[v] + 1
"""
# The last row has no element right of the diagonal; rows beyond it would have fewer than none.
TAILS = """\
@T.prim_func
def tails(B: T.Buffer((4, 4), "int32")):
    for i0, i1 in T.grid(2, 4):
        for j in {loop}(3 - (i0 * 2 + i1)):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i0 * 2 + i1)
                vj = T.axis.spatial(4, i0 * 2 + i1 + 1 + j)
                T.where(i1 < 2)
                B[vi, vj] = B[vi, vj] + 1
"""


@pytest.fixture
def _launch_small_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruction_estimate, "LAUNCH_INSTRUCTIONS", 0)


def check(func: PrimFunc, oracle: PrimFunc, threads: int, times: int = 3) -> None:
    """Run a program on threads, and compare what it computes with the oracle's word on another."""
    target = f"cpu -num-cores={threads}"
    verify_module(emit(func, CpuTarget(target)).text)
    module = build(func, target)
    inputs = random_inputs(oracle, 0)
    expected = interpret(oracle, inputs)
    for _ in range(times):
        arrays = {
            b.name: inputs[b.name].copy() if b.name in inputs else np.full_like(expected[b.name], 7)
            for b in func.buffers
        }
        module(*arrays.values(), num_threads=threads)
        compare(oracle, {name: arrays[name] for name in expected}, expected)
    module.close()


def dynamic(func: PrimFunc, block: str, step: Any) -> PrimFunc:
    schedule = Schedule(func)
    loop = schedule.get_loops(schedule.get_block(block))[0]
    schedule.parallel(loop)
    schedule.annotate(loop, "dynamic_partition", step)
    return schedule.func


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.usefixtures("_launch_small_loops")
def test_a_parallel_loop_runs_each_iteration_once(threads: int) -> None:
    func = ops.matmul(13, 17, 24)
    check(mark(func, i="parallel"), func, threads)


@pytest.mark.usefixtures("_launch_small_loops")
def test_parallel_in_parallel_runs_in_its_task() -> None:
    func = ops.matmul(13, 17, 24)
    check(mark(func, i="parallel", j="parallel"), func, 2)


@pytest.mark.usefixtures("_launch_small_loops")
def test_a_parallel_loop_in_a_serial_one_is_launched_each_time() -> None:
    func = ops.matmul(13, 17, 24)
    check(mark(func, j="parallel"), func, 3)


@pytest.mark.parametrize("step", [None, 1, 3])
def test_threads_have_workspaces_of_their_own(step: int | None) -> None:
    """Each row's intermediate is too large for the stack: shared, threads would mix rows."""
    n = 8192
    A = te.placeholder((32, n), "float32", name="A")
    T = te.compute((32, n), lambda i, j: A[i, j] + 1.0, name="T")
    B = te.compute((32, n), lambda i, j: T[i, n - 1 - j] * 2.0, name="B")
    plain = te.create_prim_func([A, B])
    rows = fuse_rows(plain, "parallel" if step is None else "serial")
    check(rows if step is None else dynamic(rows, "B", step), plain, 4, times=5)


@pytest.mark.parametrize("threads", [2, 5])
@pytest.mark.parametrize("step", [1, 4, 1000])
@pytest.mark.usefixtures("_launch_small_loops")
def test_a_dynamic_partition_computes_the_same(threads: int, step: int) -> None:
    func = ops.matmul(33, 17, 24)
    check(dynamic(func, "C", step), func, threads)


@pytest.mark.parametrize("step", [1, 7, 64, 5000])
@pytest.mark.usefixtures("_launch_small_loops")
def test_a_dynamic_partition_runs_each_iteration_once(step: int) -> None:
    for extent in (63, 64, 65, 1000):
        func = parse(ADD_ONE.format(extent=extent, step=step))
        assert structural_equal(parse(script(func)), func)
        module = build(func, "cpu -num-cores=4")
        counts: NDArray[Any] = np.zeros(extent, "int32")
        for _ in range(100):
            module(counts, num_threads=4)
        assert (counts == 100).all()


@pytest.mark.parametrize(
    "loop", ["T.parallel(90)", 'T.parallel(90, annotations={"dynamic_partition": 2})']
)
@pytest.mark.usefixtures("_launch_small_loops")
def test_rows_of_different_length_on_threads(loop: str) -> None:
    oracle = parse(TRIANGLE.format(loop="range(90)"))
    check(parse(TRIANGLE.format(loop=loop)), oracle, 2)


@pytest.mark.usefixtures("_launch_small_loops")
def test_a_parallel_loop_without_iterations_runs_none() -> None:
    """An extent below zero is no huge number of iterations."""
    func = parse(TAILS.format(loop="T.parallel"))
    for threads in (1, 2):
        module = build(func, f"cpu -num-cores={threads}")
        counts: NDArray[Any] = np.zeros((4, 4), "int32")
        module(counts)
        assert (counts == np.triu(np.ones((4, 4)), 1)).all()
        module.close()


@pytest.mark.parametrize("step", [0, -1, 1.5, "two"])
def test_a_dynamic_partition_of_something_else_is_refused(step: Any) -> None:
    func = dynamic(ops.matmul(33, 17, 24), "C", step)
    with pytest.raises(BuildError, match=r"loop i has dynamic_partition .*expected the iterations"):
        build(func, "cpu -num-cores=2")


def num_threads(func: PrimFunc) -> int:
    return emit(func, level(3, num_cores=8)).num_threads


def test_a_loop_of_little_work_runs_inline() -> None:
    assert num_threads(mark(ops.matmul(8, 8, 8), i="parallel")) == 1
    assert num_threads(mark(ops.matmul(64, 64, 64), i="parallel")) == 8
    assert num_threads(mark(ops.matmul(64, 64, 32), j="parallel")) == 1  # in each of 64 rows


def test_the_same_loop_in_vectors_is_less_work() -> None:
    size = instruction_estimate.LAUNCH_INSTRUCTIONS
    assert num_threads(mark(ops.relu(64, size // 64), i0="parallel")) == 8
    assert num_threads(mark(ops.relu(64, size // 64), i0="parallel", i1="vectorized")) == 1


def test_a_serial_kernel_uses_one_thread() -> None:
    assert num_threads(ops.matmul(64, 64, 64)) == 1


def test_the_pool_is_built_for_both_architectures() -> None:
    for cpu, wait in (("x86-64-v3", "pause"), ("neoverse-n1", "isb")):
        target = CpuTarget(f"cpu -mcpu={cpu}")
        text = thread_pool(target.triple.split("-")[0], cores=4)
        verify_module(text)
        assert wait in disassemble(text, target)
        assert compile_object(text + dynamic_launch_runtime(), target)
