"""Guards of nests of expanded loops are tested once; tiles that are cut short are right, too."""

from __future__ import annotations

import pytest

from compiler import ops, te
from compiler.driver import lower
from compiler.ir.core.nodes import BinOp, For, If, Stmt, Store, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk, walk_stmts
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def tiled(m: int, n: int, tile: tuple[int, int]) -> PrimFunc:
    """Return `B[i, j] = 2 * A[i, j] + 1` in expanded tiles that need not divide."""
    A = te.placeholder((m, n), "float32", name="A")
    B = te.compute((m, n), lambda i, j: A[i, j] * 2.0 + 1.0, name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    i, j = sch.get_loops("B")
    i0, i1 = sch.split(i, [None, tile[0]])
    j0, j1 = sch.split(j, [None, tile[1]])
    sch.reorder(i0, j0, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    return sch.func


def branches(func: PrimFunc) -> list[If]:
    lowered = lower(func, level(3))
    return [node for node in walk_stmts(lowered) if isinstance(node, If)]


@pytest.mark.parametrize("m", [8, 9, 11])
@pytest.mark.parametrize("n", [16, 17, 30])
def test_a_tile_that_is_cut_short_is_correct(m: int, n: int) -> None:
    check_against_evaluation(tiled(m, n, (4, 8)))


def test_whole_tiles_have_no_guards() -> None:
    whole = [test for test in branches(tiled(11, 30, (4, 8))) if test.otherwise is not None]
    assert whole
    assert not any(isinstance(node, If) for node in walk_stmts(whole[-1].then))


def test_a_test_that_a_loop_does_not_change_is_outside_of_it() -> None:
    """Rows are cut short, columns are not: the loop over columns is inside of the test."""
    (test,) = [test for test in branches(tiled(11, 32, (4, 8))) if test.otherwise is not None]
    assert [loop.kind for loop in _loops(test.then)] == ["serial", "unrolled", "vectorized"]


def test_rows_outside_of_a_decomposed_padding_are_skipped_by_one_test() -> None:
    """The interior of a padding starts at a row: `1 <= y`."""
    A = te.placeholder((12, 16), "float32", name="A")

    def padded(y: te.Value, x: te.Value) -> te.Value:
        inside = te.all(y >= 1, y < 13, x >= 1, x < 17)
        return te.if_then_else(inside, A[y - 1, x - 1], 0.0)

    P = te.compute((14, 18), padded, name="P")
    sch = Schedule(te.create_prim_func([A, P]))
    y, x = sch.get_loops("P")
    y0, y1 = sch.split(y, [None, 2])
    sch.decompose_padding("P", y0)
    *_, y1, x = sch.get_loops("P")
    sch.reorder(x, y1)
    x0, x1 = sch.split(x, [None, 8])
    sch.reorder(x0, x1, y1)
    sch.unroll(x1)
    sch.vectorize(y1)
    (test,) = [test for test in branches(sch.func) if test.otherwise is not None]
    assert not any(isinstance(node, If) for node in walk_stmts(test.then))
    check_against_evaluation(sch.func)


def test_where_no_tile_is_whole_nothing_is_doubled() -> None:
    (test,) = branches(tiled(3, 8, (4, 8)))
    assert test.otherwise is None


def test_a_guard_that_no_tile_meets_stays_in_whole_tiles() -> None:
    """All tiles exclude columns, and the last one rows: only the rows are tested before."""
    (test,) = [test for test in branches(tiled(11, 5, (4, 8))) if test.otherwise is not None]
    guards = [node.condition for node in walk_stmts(test.then) if isinstance(node, If)]
    assert [{n.name for n in walk(guard) if isinstance(n, Var)} for guard in guards] == [
        {"j_0", "j_1"}
    ]
    check_against_evaluation(tiled(11, 5, (4, 8)))


def test_sums_of_tiles_that_all_exclude_columns_stay_in_registers() -> None:
    func = ops.matmul(11, 5, 12)
    sch = Schedule(func)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 8])
    sch.reorder(i0, j0, k, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    lowered = lower(sch.func, level(3))
    sums = [n for n in walk_stmts(lowered) if isinstance(n, Store) and isinstance(n.value, BinOp)]
    assert sums
    assert all(store.buffer.name.startswith("C_acc") for store in sums)
    check_against_evaluation(sch.func)


def _loops(stmt: Stmt) -> list[For]:
    return [node for node in walk_stmts(stmt) if isinstance(node, For)]


@pytest.mark.parametrize("n", [33, 47, 50])
def test_a_register_tile_cut_short_in_its_lanes_is_held_in_registers(n: int) -> None:
    A, B = te.placeholder((6, 20), "float32", name="A"), te.placeholder((20, n), name="B")
    k = te.reduce_axis((0, 20), name="k")
    C = te.compute((6, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    sch.cache_read("C", 1, "global")
    sch.transform_layout(
        "C", ("read", 1), lambda r, j: (j // 24, r, j % 24), assume_injective_transform=True
    )
    i, j, r = sch.get_loops("C")
    j0, j1 = sch.split(j, [None, 24])
    r0, r1 = sch.split(r, [4, 5])
    sch.reorder(r0, j0, r1, i, j1)
    sch.unroll(i)
    sch.vectorize(j1)
    check_against_evaluation(sch.func)
