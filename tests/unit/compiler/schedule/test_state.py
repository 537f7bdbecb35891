"""When a schedule verifies the programs that primitives make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.ir.core.nodes import BlockRealize, For, IntImm, Stmt, Store
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.script import parse

LEGAL = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, thread="threadIdx.x"):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
""")


def _to_first_element(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Store):
        return replace(stmt, indices=(IntImm(0),))
    return map_stmt(stmt, _to_first_element, lambda expr: expr)


def _race() -> PrimFunc:
    """Return a program that the parser refuses: all threads write one element."""
    body = _to_first_element(LEGAL.body)
    assert isinstance(body, BlockRealize)
    return replace(LEGAL, body=body)


RACE = _race()
MESSAGE = "the result would not be a legal program"


def test_a_step_on_threads_is_verified() -> None:
    with pytest.raises(ScheduleError, match=MESSAGE) as caught:
        Schedule(LEGAL)._commit("bind", RACE)
    assert (caught.value.primitive, caught.value.code) == ("bind", "illegal_result")


PARALLEL = parse("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((4, 8))
    for i in T.parallel(4):
        for j in range(8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        with T.sblock("row"):
            T.reads()
            T.writes()
            for j in range(8):
                with T.sblock("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(B[0:4, 0:8])
                    T.writes(C[vi, vj])
                    C[vi, vj] = B[vi, vj] + T.float32(1)
""")


def test_a_copy_under_a_parallel_loop_is_verified() -> None:
    """The region that the block states is all rows, which other iterations write."""
    schedule = Schedule(PARALLEL)
    with pytest.raises(ScheduleError, match="race") as caught:
        schedule.cache_read("C", 0, "global")
    assert (caught.value.primitive, caught.value.code) == ("cache_read", "illegal_result")


def test_several_steps_are_verified_after_the_last_one() -> None:
    schedule, steps = Schedule(LEGAL), []

    def run() -> None:
        with schedule.verified_once():
            for primitive in ("split", "bind"):
                schedule._commit(primitive, RACE)
                steps.append(primitive)

    with pytest.raises(ScheduleError, match=MESSAGE) as caught:
        run()
    assert steps == ["split", "bind"]
    assert (caught.value.primitive, caught.value.code) == ("bind", "illegal_result")


def test_steps_that_end_in_a_legal_program_are_accepted() -> None:
    schedule = Schedule(LEGAL)
    with schedule.verified_once():
        with schedule.verified_once():
            schedule._commit("split", RACE)
        schedule._commit("bind", LEGAL)
    assert schedule.func is LEGAL


def test_steps_after_them_are_verified_again() -> None:
    schedule = Schedule(LEGAL)
    with schedule.verified_once():
        schedule._commit("bind", LEGAL)
    with pytest.raises(ScheduleError, match=MESSAGE):
        schedule._commit("bind", RACE)


def test_a_copy_is_verified_and_verifies_its_steps() -> None:
    schedule = Schedule(LEGAL)
    with schedule.verified_once():
        with pytest.raises(ScheduleError, match=MESSAGE):
            schedule.copy()._commit("bind", RACE)
        schedule._commit("bind", RACE)
        with pytest.raises(ScheduleError, match=MESSAGE):
            schedule.copy()
        schedule._commit("bind", LEGAL)


SHARED_SUM = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.reduce(8, i)
            T.reads(A[vi])
            T.writes(C[0])
            with T.init():
                C[0] = T.float32(0)
            C[0] = C[0] + A[vi]
""")


def _bound(axis: str) -> PrimFunc:
    """Return a program whose sum is over blocks or threads, without the check of `bind`."""

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, lambda expr: expr)
        return replace(new, kind="thread_binding", thread=axis) if isinstance(new, For) else new

    body = visit(SHARED_SUM.body)
    assert isinstance(body, BlockRealize)
    return replace(SHARED_SUM, body=body)


def test_conflicts_of_threads_are_found_at_once_or_after_the_last_step() -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule(SHARED_SUM)._commit("split", _bound("blockIdx.x"))
    assert caught.value.code == "threads"
    schedule = Schedule(SHARED_SUM)
    with pytest.raises(ScheduleError) as caught, schedule.verified_once():
        schedule._commit("split", _bound("blockIdx.x"))
    steps = []

    def run(last: PrimFunc) -> None:
        deferring = Schedule(SHARED_SUM)
        with deferring.verified_once(defers_threads=True):
            deferring._commit("split", _bound("blockIdx.x"))
            steps.append("split")
            deferring._commit("bind", last)

    with pytest.raises(ScheduleError) as caught:
        run(_bound("blockIdx.x"))
    assert (caught.value.primitive, caught.value.code) == ("bind", "threads")
    run(SHARED_SUM)
    assert steps == ["split", "split"]
