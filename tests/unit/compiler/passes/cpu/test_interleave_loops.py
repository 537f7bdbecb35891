"""A loop that reads the next row runs in the iterations of one that computes with the last row."""

from __future__ import annotations

from compiler import ops
from compiler.driver import lower
from compiler.ir.core.nodes import For, Stmt, Store
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.cpu.interleave_loops import KEY
from compiler.passes.cpu.reduce_in_lanes import KEY as LANES
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def copied_and_summed(columns: int, source: str) -> PrimFunc:
    """Return a copy of a row, which is to run in the loop of a sum of `source` after it."""
    return parse(f"""
@T.prim_func
def main(A: T.Buffer(({columns},), "float32"), B: T.Buffer(({columns},), "float32"),
         copied: T.Buffer(({columns},), "float32"), total: T.Buffer((1,), "float32")):
    with T.sblock("start"):
        T.reads()
        T.writes(total[0])
        total[0] = T.float32(0)
    for j in T.vectorized({columns}, annotations={{"{KEY}": 1}}):
        with T.sblock("copied"):
            v = T.axis.spatial({columns}, j)
            copied[v] = A[v] * T.float32(2)
    for k in T.serial({columns}, annotations={{"{LANES}": [16, 1]}}):
        with T.sblock("total"):
            v = T.axis.reduce({columns}, k)
            total[0] = total[0] + {source}[v]
""")


def stored_in(stmt: Stmt, name: str) -> bool:
    return any(isinstance(n, Store) and n.buffer.name == name for n in walk_stmts(stmt))


def is_interleaved(func: PrimFunc) -> bool:
    """Return whether a serial loop has both the copy and the lanes of the sum."""
    return any(
        isinstance(loop, For)
        and loop.kind == "serial"
        and stored_in(loop, "copied")
        and stored_in(loop, "total_lanes")
        for loop in walk_stmts(lower(func, level(3)))
    )


def test_a_loop_runs_in_the_iterations_of_the_next() -> None:
    func = copied_and_summed(96, "B")
    assert is_interleaved(func)
    check_against_evaluation(func)


def test_a_loop_that_the_next_one_depends_on_stays_before_it() -> None:
    func = copied_and_summed(96, "copied")
    assert not is_interleaved(func)
    check_against_evaluation(func)


def test_a_loop_that_the_iterations_do_not_divide_stays() -> None:
    func = copied_and_summed(97, "B")
    assert not is_interleaved(func)
    check_against_evaluation(func)


def normalized(*, is_ahead: bool) -> PrimFunc:
    """Return a norm of rows, each of which is read in the loop of the variance before it."""
    sch = Schedule(ops.layer_norm(5, 96, residual=True))
    outer, inner = sch.get_loops(sch.get_block("B"))
    for name in ("spread", "mean", "total", "added"):
        sch.compute_at(sch.get_block(name), outer)
    for name in ("total", "spread"):
        sch.annotate(sch.get_loops(sch.get_block(name))[-1], LANES, [16, 1])
        sch.decompose_reduction(sch.get_block(name), sch.get_loops(sch.get_block(name))[1])
    loop = sch.get_loops(sch.get_block("added"))[-1]
    for vectorized in (loop, inner):
        sch.vectorize(vectorized)
    sch.annotate(loop, KEY, 1)
    if is_ahead:
        sch.annotate(outer, "software_pipeline_stage", [0, 1, 1, 1, 1, 1, 1])
        sch.annotate(outer, "software_pipeline_order", [4, 0, 1, 2, 3, 5, 6])
    return sch.func


def test_other_versions_of_a_buffer_are_independent() -> None:
    func = normalized(is_ahead=True)
    loops = [
        loop
        for loop in walk_stmts(lower(func, level(3)))
        if isinstance(loop, For) and loop.kind == "serial" and stored_in(loop, "spread_lanes")
    ]
    assert stored_in(loops[-2], "added")
    check_against_evaluation(func)


def test_the_same_version_is_not() -> None:
    func = normalized(is_ahead=False)
    check_against_evaluation(func)


def test_a_loop_stays_before_one_of_its_own_variables() -> None:
    """Threads that a CPU runs one after another share the variable of their loops."""
    sch = Schedule(
        parse("""
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
         E: T.Buffer((4, 4), "float32")):
    for i in T.thread_binding(4, thread="threadIdx.x"):
        for j in range(4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1.0
        for j in range(4):
            with T.sblock("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = A[vj, vi] * 2.0
""")
    )
    copy = sch.read_at(sch.get_loops("B")[1], "B", 0, "shared")
    sch.annotate(sch.get_loops(copy)[-1], KEY, 1)
    check_against_evaluation(sch.func)
