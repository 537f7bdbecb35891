"""Partial tiles of symbolic extents have code of their own for each number of rows."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.driver import build, lower
from compiler.ir.core.nodes import For, If, IntImm, Stmt
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.cpu.partial_tiles import MAX_ROWS
from compiler.schedule.schedule import Schedule

ONE_CORE = "cpu -num-cores=1"


def product(rows: te.Value | int) -> PrimFunc:
    a = te.placeholder((rows, 8), "float32", name="A")
    b = te.placeholder((8, 16), "float32", name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((rows, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def tiled(rows: te.Value | int, tile: int) -> Schedule:
    sch = Schedule(product(rows))
    i, j, k = sch.get_loops("C")
    outer, inner = sch.split(i, [None, tile])
    sch.reorder(outer, k, inner, j)
    sch.unroll(inner)
    sch.vectorize(j)
    sch.decompose_reduction("C", k)
    return sch


def unrolled_rows(stmt: Stmt) -> set[int]:
    loops = (node for node in walk_stmts(stmt) if isinstance(node, For))
    return {
        loop.extent.value
        for loop in loops
        if loop.kind == "unrolled" and isinstance(loop.extent, IntImm)
    }


def test_each_number_of_rows_has_code_without_guards() -> None:
    body = lower(tiled(te.var("m"), 4).func, ONE_CORE)
    assert unrolled_rows(body) == {2, 3, 4}  # a single row has no loop
    inner = [node for node in walk_stmts(body) if isinstance(node, For) and node.kind != "serial"]
    assert not any(isinstance(node, If) for loop in inner for node in walk_stmts(loop))


def test_the_choice_is_made_outside_of_the_sum() -> None:
    body = lower(tiled(te.var("m"), 4).func, ONE_CORE)
    sums = [n for n in walk_stmts(body) if isinstance(n, For) and n.extent == IntImm(8)]
    assert sums
    assert not any(isinstance(node, If) for loop in sums for node in walk_stmts(loop))


@pytest.mark.parametrize("rows", [10, 12])
def test_a_constant_extent_has_no_variants(rows: int) -> None:
    assert unrolled_rows(lower(tiled(rows, 4).func, ONE_CORE)) == {4}


def test_long_tiles_keep_their_guards() -> None:
    tile = MAX_ROWS + 1
    assert unrolled_rows(lower(tiled(te.var("m"), tile).func, ONE_CORE)) == {tile}


@pytest.mark.parametrize("tile", [2, 3, 4, 6, MAX_ROWS, MAX_ROWS + 1])
def test_all_numbers_of_rows_are_computed(tile: int) -> None:
    kernel = build(tiled(te.var("m"), tile), ONE_CORE)
    rng = np.random.default_rng(0)
    for rows in range(1, 2 * tile + 2):
        a, b = rng.random((rows, 8), "float32"), rng.random((8, 16), "float32")
        c = np.full((rows + 1, 16), np.nan, "float32")
        kernel(a, b, c[:rows])
        np.testing.assert_allclose(c[:rows], a @ b, rtol=1e-5)
        assert np.isnan(c[rows:]).all()
    kernel.close()
