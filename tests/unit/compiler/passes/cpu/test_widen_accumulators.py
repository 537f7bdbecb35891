"""Narrow floats in registers: they are added up in 32 bits, and rounded where they leave."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.driver import lower
from compiler.ir.core.dtypes import DType, epsilon
from compiler.ir.core.nodes import Allocate, ArithOp
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.schedule import Schedule
from compiler.target.target import Target
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation, run


def sums(dtype: DType, m: int, n: int, k: int, op: ArithOp = "-") -> PrimFunc:
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def element(i: te.Value, j: te.Value) -> te.Reduction:
        term = A[i, r] * B[r, j] if op == "*" else A[i, r] - B[r, j]
        return te.sum(term, axis=r)

    return te.create_prim_func([A, B, te.compute((m, n), element, name="C")])


def accumulators(func: PrimFunc, target: Target | None = None) -> list[DType]:
    lowered = lower(func, target or level(3))
    return [n.buffer.dtype for n in walk_stmts(lowered) if isinstance(n, Allocate)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_a_long_sum_does_not_stop_growing(dtype: DType) -> None:
    """In 16 bits, 2048 + 1 is 2048 again, and 256 + 1 is 256."""
    func = sums(dtype, 1, 1, 4096)
    assert accumulators(func) == ["float32"]
    ones, zeros = np.ones((1, 4096), dtype), np.zeros((4096, 1), dtype)
    assert run(func, ones, zeros).item() == 4096


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_a_tile_is_rounded_once(dtype: DType) -> None:
    sch = Schedule(sums(dtype, 9, 48, 33))
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 3])
    j0, j1 = sch.split(j, [None, 16])
    sch.reorder(i0, j0, k, i1, j1)
    sch.unroll(i1)
    sch.vectorize(j1)
    assert set(accumulators(sch.func)) == {"float32"}
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((9, 33), (33, 48)))
    exact = a.astype(np.float64).sum(1)[:, None] - b.astype(np.float64).sum(0)
    got = run(sch.func, a, b).astype(np.float64)
    np.testing.assert_allclose(got, exact, rtol=0.51 * epsilon(dtype), atol=1e-5)


@pytest.mark.parametrize(
    ("cpu", "dtype", "op", "expected"),
    [
        ("sapphirerapids", "float16", "*", "float16"),
        ("cortex-a76", "float16", "*", "float16"),
        ("sifive-x280", "float16", "*", "float16"),
        ("sapphirerapids", "float16", "-", "float32"),
        ("sapphirerapids", "bfloat16", "*", "float32"),
        ("znver5", "float16", "*", "float32"),
        ("cortex-a72", "float16", "*", "float32"),
    ],
)
def test_sums_of_products_stay_in_float16_if_the_cpu_adds_it(
    cpu: str, dtype: DType, op: ArithOp, expected: DType
) -> None:
    target = Target(f"cpu -mcpu={cpu} -num-cores=1")
    assert accumulators(sums(dtype, 1, 1, 64, op), target) == [expected]


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
    assert accumulators(sums("float64", 2, 8, 16)) == ["float64"]
