"""Buffers in panels: their shape, and that all that touches them finds its elements."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.driver import lower
from compiler.ir.core.nodes import (
    Allocate,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def packed(rows: int, tile: tuple[int, ...], *, annotation: object = None) -> PrimFunc:
    """Return `C = A B` with A in panels of `tile` rows, each block of 8 steps at a time."""
    A = te.placeholder((rows, 24), "float32", name="A")
    B = te.placeholder((24, 16), "float32", name="B")
    k = te.reduce_axis((0, 24), name="k")
    C = te.compute((rows, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    i, j, r = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, tile[-1]])
    r0, r1 = sch.split(r, [None, 8])
    sch.reorder(r0, i0, r1, i1, j)
    copy = sch.cache_read("C", 0, "global")
    sch.compute_at(copy, r0)
    sch.annotate(copy, "buffer_tile", annotation or [0, *tile])  # type: ignore[arg-type]
    sch.unroll(i1)
    sch.vectorize(j)
    return sch.func


def shape_of_copy(func: PrimFunc) -> tuple[int, ...]:
    lowered = lower(func, level(3))
    found = [n.buffer for n in walk_stmts(lowered) if isinstance(n, Allocate)]
    return next(static_shape(buffer) for buffer in found if buffer.name == "A_global")


@pytest.mark.parametrize(("rows", "panels"), [(12, 2), (13, 3), (6, 1)])
def test_a_copy_in_panels_holds_what_one_step_reads(rows: int, panels: int) -> None:
    func = packed(rows, (0, 6))
    assert shape_of_copy(func) == (panels, 8, 6)
    check_against_evaluation(func)


def test_the_last_axis_may_be_in_panels() -> None:
    func = packed(12, (1, 4))
    assert shape_of_copy(func) == (2, 12, 4)
    check_against_evaluation(func)


@pytest.mark.parametrize(("rows", "panels"), [(12, 2), (13, 3)])
def test_two_axes_may_be_cut(rows: int, panels: int) -> None:
    func = packed(rows, (0, 6), annotation=[0, 0, 6, 1, 4])
    assert shape_of_copy(func) == (panels, 2, 6, 4)
    check_against_evaluation(func)


@pytest.mark.parametrize(
    "annotation",
    [
        [0, 0, 1],
        [0, 2, 6],
        [1, 0, 6],
        [0, 0],
        "six",
        [0, -1, 6],
        [0, 0, 6, 1],
        [0, 0, 6, 0, 4],
        [0, 0, 6, 1, 0],
        [0, 0, 6, 2, 4],
    ],
)
def test_what_makes_no_sense_is_ignored(annotation: object) -> None:
    func = packed(12, (0, 6), annotation=annotation)
    assert shape_of_copy(func) == (12, 8)
    check_against_evaluation(func)


def test_the_layout_of_a_parameter_stays() -> None:
    A = te.placeholder((8,), "float32", name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    sch.annotate("B", "buffer_tile", [0, 0, 4])
    check_against_evaluation(sch.func)
