"""Buffers of one tile have room for its padding, which is then computed without guards."""

from __future__ import annotations

from typing import Any

import pytest

from compiler import te
from compiler.driver import lower
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import If, Stmt, Store
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import statements_in
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def in_tiles(
    rows: int, tile: int, body: Any, dtype: DType = "float32", *, is_copied: bool = True
) -> PrimFunc:
    """Return `out[i, j] = B[i, j] + 1` with `B[i, j] = body(A, i, j)`, tile by tile of rows."""
    A = te.placeholder((rows, 10), dtype, name="A")
    B = te.compute((rows, 10), lambda i, j: body(A, i, j), name="B")
    out = te.compute((rows, 10), lambda i, j: B[i, j] + 1, name="out")
    sch = Schedule(te.create_prim_func([A, out]))
    producer, sink = sch.get_block("B"), sch.get_block("out")
    outer, inner = sch.split(sch.get_loops(sink)[0], [None, tile])
    sch.compute_at(producer, outer)
    if is_copied:
        sch.compute_at(sch.cache_read(producer, 0, "global"), outer)
    for block in (producer, sink):
        sch.vectorize(sch.get_loops(block)[-1])
    sch.unroll(inner)
    return sch.func


def guarded(func: PrimFunc, name: str) -> list[bool]:
    """Return, for each store to a buffer, whether a condition is around it."""

    def visit(stmt: Stmt, is_guarded: bool) -> None:
        if isinstance(stmt, Store) and stmt.buffer.name == name:
            stores.append(is_guarded)
        for child in statements_in(stmt):
            visit(child, is_guarded or isinstance(stmt, If))

    stores: list[bool] = []
    visit(lower(func, level(3)), False)
    return stores


def doubled(A: Any, i: Any, j: Any) -> Any:
    return A[i, j] * 2


@pytest.mark.parametrize(("rows", "tile"), [(11, 4), (7, 6), (13, 8), (3, 4)])
def test_padding_is_computed_and_not_stored(rows: int, tile: int) -> None:
    func = in_tiles(rows, tile, doubled)
    assert guarded(func, "B") == [False]
    assert any(guarded(func, "out"))
    check_against_evaluation(func)


@pytest.mark.parametrize("in_blocks", [False, True])
def test_padding_of_panels_is_computed(in_blocks: bool) -> None:
    """Panels have room for whole tiles, whose rows have two indices in the buffer."""
    A = te.placeholder((11, 10), name="A")
    B = te.compute((11, 10), lambda i, j: A[i, j] * 2, name="B")
    out = te.compute((11, 10), lambda i, j: B[i, j] + 1, name="out")
    sch = Schedule(te.create_prim_func([A, out]))
    producer = sch.get_block("B")
    blocks = [sch.cache_read(producer, 0, "global"), producer]
    factors = [None, 1, 4] if in_blocks else [None, 4]
    for block in blocks:
        sch.annotate(block, "buffer_tile", [0, 0, 4])
        sch.split(sch.get_loops(block)[0], factors)
    assert guarded(sch.func, "B") == [False]
    assert guarded(sch.func, "out") == [False]
    check_against_evaluation(sch.func)


def test_what_is_loaded_from_beyond_a_parameter_keeps_its_guard() -> None:
    func = in_tiles(11, 4, doubled, is_copied=False)
    assert any(guarded(func, "B"))
    check_against_evaluation(func)


def test_an_integer_division_of_padding_keeps_its_guard() -> None:
    """Padding holds anything, and a division by zero stops a process."""
    func = in_tiles(11, 4, lambda A, i, j: A[i, j] // (A[i, 0] * A[i, 0] + 1), "int32")
    assert any(guarded(func, "B"))


def test_an_index_that_is_loaded_keeps_its_guard() -> None:
    func = in_tiles(11, 4, lambda A, i, j: A[i, te.max(te.min(A[i, j], 9), 0)], "int32")
    assert any(guarded(func, "B"))


def test_elements_that_are_also_written_without_the_guard_keep_their_values() -> None:
    """The interior of a padding is written under a guard, its border is not."""
    A = te.placeholder((11, 10), "float32", name="A")
    pad = te.compute(
        (14, 10),
        lambda i, j: te.if_then_else(te.all(i >= 2, i < 13), A[i - 2, j], 0.0),
        name="pad",
    )
    r = te.reduce_axis((0, 3), name="r")
    out = te.compute((12, 10), lambda i, j: te.sum(pad[i + r, j], axis=r), name="out")
    sch = Schedule(te.create_prim_func([A, out]))
    outer, _ = sch.split(sch.get_loops("out")[0], [None, 5])
    sch.compute_at("pad", outer)
    sch.decompose_padding("pad", sch.get_loops("pad")[1])
    check_against_evaluation(sch.func)
