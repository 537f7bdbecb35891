"""Narrow floats in registers: they are added up in 32 bits, and rounded where they leave."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.driver import lower
from compiler.ir.core.dtypes import DType, epsilon
from compiler.ir.core.nodes import (
    Allocate,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation, run


def product(dtype: DType, m: int, n: int, k: int) -> PrimFunc:
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.create_prim_func([A, B, C])


def accumulators(func: PrimFunc) -> list[DType]:
    lowered = lower(func, level(3))
    return [n.buffer.dtype for n in walk_stmts(lowered) if isinstance(n, Allocate)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_a_long_sum_does_not_stop_growing(dtype: DType) -> None:
    """In 16 bits, 2048 + 1 is 2048 again, and 256 + 1 is 256."""
    func = product(dtype, 1, 1, 4096)
    assert accumulators(func) == ["float32"]
    ones = np.ones((1, 4096), dtype)
    assert run(func, ones, ones.T.copy()).item() == 4096


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_a_tile_is_rounded_once(dtype: DType) -> None:
    sch = Schedule(product(dtype, 9, 48, 33))
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 3])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, k, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    assert set(accumulators(sch.func)) == {"float32"}
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((9, 33), (33, 48)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    got = run(sch.func, a, b).astype(np.float64)
    np.testing.assert_allclose(got, exact, rtol=0.51 * epsilon(dtype), atol=1e-5)


def test_choices_and_conversions_in_an_accumulation_keep_their_meaning() -> None:
    A = te.placeholder((37,), "float16", name="A")
    k = te.reduce_axis((0, 37), name="k")
    chosen = te.compute(
        (1,),
        lambda i: te.max(te.select(A[k] > A[0], A[k], te.cast("float16", 0.1)), axis=k),
        name="C",
    )
    func = te.create_prim_func([A, chosen])
    assert accumulators(func) == ["float32"]
    check_against_evaluation(func, rtol=1e-6)


def test_wide_accumulators_stay_as_they_are() -> None:
    assert accumulators(product("float64", 2, 8, 16)) == ["float64"]
