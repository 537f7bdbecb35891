"""Register tiles of reductions: where they are held, how they start, and what guards them."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.driver import emit, lower
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    For,
    If,
    IntImm,
    Store,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def product(m: int, n: int, k: int) -> PrimFunc:
    """Return `C = A B`."""
    A, B = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])


def tiled(func: PrimFunc, tile: tuple[int, int], steps: list[int | None]) -> PrimFunc:
    """Return a product in register tiles, with the outer part of the reduction outside of them."""
    sch = Schedule(func)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, tile[0]])
    j0, j1 = sch.split(j, [None, tile[1]])
    parts = sch.split(k, steps)
    sch.reorder(parts[0], i0, j0, *parts[1:], i1, j1)
    for loop in (*parts[2:], i1):
        sch.unroll(loop)
    sch.vectorize(j1)
    return sch.func


def accumulators(func: PrimFunc) -> list[Allocate]:
    lowered = lower(func, level(3))
    return [n for n in walk_stmts(lowered) if isinstance(n, Allocate)]


def kernels(func: PrimFunc) -> list[For]:
    """Return the innermost serial loops."""
    lowered = lower(func, level(3))
    loops = [n for n in walk_stmts(lowered) if isinstance(n, For) and n.kind == "serial"]
    return [
        loop
        for loop in loops
        if not any(isinstance(n, For) and n.kind == "serial" for n in walk_stmts(loop.body))
    ]


@pytest.mark.parametrize("steps", [[None, 8], [1, 24], [None, 4, 2], [24, 1, 1]])
def test_a_tile_starts_from_zero_where_the_outer_reduction_begins(steps: list[int | None]) -> None:
    func = tiled(product(8, 32, 24), (4, 16), steps)
    check_against_evaluation(func)
    if steps[1:] != [1, 1]:
        assert len(accumulators(func)) == 1
    for loop in kernels(func):
        assert not any(isinstance(n, If) for n in walk_stmts(loop))


def test_one_start_needs_no_condition() -> None:
    func = tiled(product(8, 32, 24), (4, 16), [1, 24])
    lowered = lower(func, level(3))
    assert not any(isinstance(n, If) for n in walk_stmts(lowered))


@pytest.mark.parametrize("is_decomposed", [False, True])
def test_a_partial_tile_is_accumulated_under_its_guard(is_decomposed: bool) -> None:
    """Whole tiles have no guard; a partial one keeps its guard, because `A` ends before it."""
    sch = Schedule(tiled(product(10, 30, 24), (4, 16), [1, 24]))
    if is_decomposed:
        sch.decompose_reduction("C", sch.get_loops("C")[0])
    check_against_evaluation(sch.func)
    assert [a.buffer.name for a in accumulators(sch.func)] == ["C_acc", "C_acc"]
    sums = [n for n in kernels(sch.func) if n.extent == IntImm(24)]
    assert [any(isinstance(n, If) for n in walk_stmts(loop)) for loop in sums] == [False, True]


def test_what_a_partial_tile_repeats_is_loaded_once_for_all_lanes() -> None:
    func = tiled(product(10, 30, 24), (4, 16), [1, 24])
    text = emit(func, level(3)).text
    assert "llvm.masked.load" in text
    assert "gather" not in text


@pytest.mark.parametrize(("m", "n"), [(8, 32), (10, 32), (8, 30), (7, 9), (13, 17)])
def test_a_guard_leaves_the_steps_where_all_that_is_read_is_there(m: int, n: int) -> None:
    sch = Schedule(product(m, n, 24))
    layouts = (lambda i, k: (i // 4, k, i % 4), lambda k, j: (j // 16, k, j % 16))
    for read, layout in enumerate(layouts):
        sch.cache_read("C", read, "global")
        sch.transform_layout("C", ("read", read), layout, assume_injective_transform=True)
    func = tiled(sch.func, (4, 16), [None, 8])
    check_against_evaluation(func)
    assert any(a.buffer.name == "C_acc" for a in accumulators(func))
    for loop in kernels(func):
        stores = [s for s in walk_stmts(loop) if isinstance(s, Store)]
        if any(s.buffer.name == "C_acc" for s in stores):
            assert not any(isinstance(n, If) and n.condition != TRUE for n in walk_stmts(loop))
