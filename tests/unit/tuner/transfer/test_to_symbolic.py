"""A schedule of one size becomes one of the symbolic program, with the same tiles."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from tuner.transfer.to_symbolic import symbolic_trace


def product(rows: te.Value | int) -> PrimFunc:
    a = te.placeholder((rows, 24), "float32", name="A")
    b = te.placeholder((24, 16), "float32", name="B")
    k = te.reduce_axis((0, 24), name="k")
    c = te.compute((rows, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def tiled(sch: Schedule, *, is_perfect: bool) -> Trace:
    i, j, k = sch.get_loops("C")
    perfect = sch.sample_perfect_tile(i, 3, decision=[3, 2, 4]) if is_perfect else None
    i_0, i_1, i_2 = sch.split(i, perfect or [3, None, 4])
    k_0, k_1 = sch.split(k, [None, 4])
    sch.reorder(i_0, i_1, k_0, k_1, i_2, j)
    sch.unroll(i_2)
    sch.vectorize(j)
    return sch.trace


@pytest.mark.parametrize(("is_perfect", "tile"), [(True, None), (False, None), (True, 5)])
def test_tiles_keep_their_sizes_and_the_outermost_loop_grows(
    is_perfect: bool, tile: int | None
) -> None:
    trace = tiled(Schedule(product(24)), is_perfect=is_perfect)
    func = product(te.var("M"))
    symbolic = symbolic_trace(trace, func, {"M": 24}, tile).apply_to(func)
    parts, rows_of_tile = ("(M + 7) // 8", 4) if tile is None else ("(M + 9) // 10", tile)
    assert f"in T.grid({parts}, 2, 6, 4):" in symbolic.func.script()
    assert f"in T.unroll({rows_of_tile}):" in symbolic.func.script()
    kernel = build(symbolic, "cpu -num-cores=1")
    rng = np.random.default_rng(0)
    for rows in (1, 7, 8, 24, 51):
        a, b = rng.random((rows, 24), "float32"), rng.random((24, 16), "float32")
        c = np.full((rows, 16), np.nan, "float32")
        kernel(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    kernel.close()


def test_a_trace_without_symbolic_loops_stays_the_same() -> None:
    func = product(te.var("M"))
    sch = Schedule(product(24))
    sch.vectorize(sch.get_loops("C")[1])
    assert symbolic_trace(sch.trace, func, {"M": 24}, 5) == sch.trace


def test_tiles_of_one_row_stay() -> None:
    func = product(te.var("M"))
    sch = Schedule(product(24))
    sch.split(sch.get_loops("C")[0], [None, 1])
    trace = symbolic_trace(sch.trace, func, {"M": 24}, 5)
    assert trace == symbolic_trace(sch.trace, func, {"M": 24})
