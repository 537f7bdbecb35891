"""Loops that are annotated so reduce in lanes; the result is that of one step after another."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops, te
from compiler.driver import build, lower
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import For, static_int
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ops.programs.reductions import Reduce
from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, check_against_evaluation


def in_lanes(func: PrimFunc, lanes: int | list[int], rows: int = 1, block: str = "B") -> PrimFunc:
    """Return a program that reduces rows, `rows` of them at once."""
    schedule = Schedule(func)
    row, step = schedule.get_loops(schedule.get_block(block))
    outer, inner = schedule.split(row, [None, rows])
    schedule.reorder(outer, step, inner)
    schedule.unroll(inner)
    schedule.annotate(step, KEY, lanes)
    schedule.decompose_reduction(schedule.get_block(block), step)
    return schedule.func


def has_lanes(func: PrimFunc) -> bool:
    stmt = lower(func, level(3))
    return any(isinstance(n, For) and n.var.name == "lane" for n in walk_stmts(stmt))


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("lanes", [1, 2, 8, 24, 64])
@pytest.mark.parametrize("extent", [1, 2, 3, 8, 33, 64, 77])
def test_any_extent_is_reduced_in_any_number_of_lanes(extent: int, lanes: int, rows: int) -> None:
    func = in_lanes(ops.sum(4, extent, axis=1), lanes, rows)
    assert has_lanes(func) == (min(extent, lanes) > 1)
    check_against_evaluation(func)


@pytest.mark.parametrize(("num_rows", "rows"), [(5, 3), (7, 4), (2, 3)])
@pytest.mark.parametrize("extent", [3, 33])
def test_rows_of_a_tile_that_is_cut_short_are_reduced_in_lanes(
    extent: int, num_rows: int, rows: int
) -> None:
    func = in_lanes(ops.sum(num_rows, extent, axis=1), 8, rows)
    assert has_lanes(func) == (num_rows > rows)
    check_against_evaluation(func)


@pytest.mark.parametrize(("num_rows", "rows"), [(4, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("extent", [8, 13, 33])
def test_lanes_are_combined_once_for_all_loops_around(
    extent: int, num_rows: int, rows: int
) -> None:
    schedule = Schedule(ops.sum(num_rows, 6, extent, axis=(1, 2)))
    row, outer_step, step = schedule.get_loops("B")
    outer, inner = schedule.split(row, [None, rows])
    schedule.reorder(outer, outer_step, step, inner)
    schedule.unroll(inner)
    schedule.annotate(step, KEY, 8)
    schedule.decompose_reduction("B", outer_step)
    inside = [
        node.extent
        for loop in walk_stmts(lower(schedule.func, level(3)))
        if isinstance(loop, For) and static_int(loop.extent) == 6 and loop.kind == "serial"
        for node in walk_stmts(loop.body)
        if isinstance(node, For) and node.var.name == "lane"
    ]
    # The steps in 8 lanes and the remainder; combining would need 4, 2 and 1.
    assert {static_int(n) for n in inside} == {8, extent % 8} - {0}
    check_against_evaluation(schedule.func)


@pytest.mark.parametrize("steps", [2, 4])
@pytest.mark.parametrize("extent", [7, 8, 33, 77])
def test_steps_are_unrolled_for_any_extent(extent: int, steps: int) -> None:
    func = in_lanes(ops.max(4, extent, axis=1), [8, steps], 2)
    unrolled = [n for n in walk_stmts(lower(func, level(3))) if isinstance(n, For)]
    assert any(n.var.name == "k_1" and n.kind == "unrolled" for n in unrolled) == (
        extent // 8 >= steps
    )
    check_against_evaluation(func)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "uint8"])
@pytest.mark.parametrize("operator", [ops.sum, ops.prod, ops.max, ops.min])
def test_each_operation_has_its_identity(operator: Reduce, dtype: DType) -> None:
    func = in_lanes(operator(3, 21, axis=1, dtype=dtype), 8)
    assert has_lanes(func)
    check_against_evaluation(func, rtol=1e-2 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("operator", [ops.sum, ops.max, ops.min])
def test_special_values_come_through(operator: Reduce) -> None:
    rows = np.random.default_rng(0).standard_normal((8, 21)).astype(np.float32)
    for row, column in enumerate((0, 7, 8, 15, 16, 20)):
        rows[row, column] = np.nan
    rows[6, 5], rows[7] = np.inf, -np.inf
    func = in_lanes(operator(8, 21, axis=1), 8, rows=2)
    expected = evaluate(func, {"A": rows, "B": np.zeros(8, np.float32)})["B"]
    module = build(func, ONE_CORE)
    out = np.zeros(8, np.float32)
    module(rows, out)
    module.close()
    np.testing.assert_allclose(out, expected, rtol=1e-5)
    assert np.isnan(out[:6]).all()


def test_what_is_reduced_may_be_computed_in_the_loop() -> None:
    a = te.placeholder((3, 29), name="A")
    k = te.reduce_axis((0, 29), name="k")
    b = te.compute((3,), lambda i: te.sum((a[i, k] - a[i, 0]) * a[i, 28 - k], axis=k), name="B")
    func = in_lanes(te.create_prim_func([a, b]), 16)
    assert has_lanes(func)
    check_against_evaluation(func)


STAYS = {
    "it writes more than it reduces": "B[0] = B[0] + A[k]\n        C[k] = A[k]",
    "it reads the result on the way": "B[0] = B[0] + A[k]\n        C[0] = C[0] + B[0]",
    "it is no sum": "B[0] = A[k] - B[0]",
    "it runs under a condition": "if A[k] > T.float32(0):\n            B[0] = B[0] + A[k]",
    "the result moves": "B[k] = B[k] + A[k]",
    "the result is added to itself": "B[0] = B[0] + B[0]",
    "loops reach an element twice": (
        "for j in range(6):\n            B[j // 2] = B[j // 2] + A[k] * C[j]"
    ),
    "loops overlap": (
        "for i, j in T.grid(3, 3):\n            B[i * 2 + j] = B[i * 2 + j] + A[k] * C[i * 3 + j]"
    ),
    "a loop ends with another one": (
        "for i in range(3):\n            for j in range(i + 1):\n"
        "                B[j] = B[j] + A[k] * C[i * 3 + j]"
    ),
}


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS.keys())
def test_a_loop_stays_as_it_is_where(body: str) -> None:
    func = parse(
        f"""
@T.prim_func
def main(
    A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32"), C: T.Buffer((9,), "float32")
):
    for k in T.serial(9, annotations={{"{KEY}": 8}}):
        {body}
"""
    )
    assert not has_lanes(func)
    check_against_evaluation(func)


def test_an_unfinished_start_keeps_the_loop() -> None:
    schedule = Schedule(ops.sum(4, 16, axis=1))
    schedule.annotate(schedule.get_loops(schedule.get_block("B"))[1], KEY, 8)
    assert not has_lanes(schedule.func)
    check_against_evaluation(schedule.func)
