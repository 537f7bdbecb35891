"""Scans in vectors compute what one step after another does."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.driver import lower
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import For
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.cpu.scan_in_lanes import KEY
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def in_lanes(func: PrimFunc, elements: int) -> PrimFunc:
    """Return a program that scans rows in vectors."""
    schedule = Schedule(func)
    schedule.annotate(schedule.get_loops(schedule.get_block("cumsum"))[-1], KEY, elements)
    return schedule.func


def has_lanes(func: PrimFunc) -> bool:
    stmt = lower(func, level(3))
    return any(isinstance(n, For) and n.var.name == "lane" for n in walk_stmts(stmt))


@pytest.mark.parametrize("elements", [8, 16])
@pytest.mark.parametrize("extent", [1, 5, 8, 15, 16, 47])
def test_any_extent_is_scanned_in_steps_of_any_size(extent: int, elements: int) -> None:
    func = in_lanes(ops.cumsum(3, extent), elements)
    assert has_lanes(func)
    check_against_evaluation(func, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
def test_each_type_of_whole_words_is_scanned(dtype: DType) -> None:
    func = in_lanes(ops.cumsum(2, 21, dtype=dtype), 8)
    assert has_lanes(func)
    check_against_evaluation(func, rtol=1e-4)


def program(body: str) -> PrimFunc:
    return parse(
        f"""
@T.prim_func
def main(A: T.Buffer((29,), "float32"), B: T.Buffer((29,), "float32")):
    for k in T.serial(29, annotations={{"{KEY}": 8}}):
        {body}
"""
    )


def test_a_product_starts_with_any_value_and_reads_what_it_computes() -> None:
    before = "T.if_then_else(k > 0, B[k - 1], T.float32(0.5))"
    func = program(f"B[k] = (A[k] - A[28 - k] * T.float32(0.5)) * {before}")
    assert has_lanes(func)
    check_against_evaluation(func, rtol=1e-4)


STAYS = {
    "it is no sum": "B[k] = T.if_then_else(0 < k, B[k - 1], T.float32(0)) - A[k]",
    "it begins later": "B[k] = T.if_then_else(1 < k, B[k - 1], T.float32(0)) + A[k]",
    "it runs on from another step": "B[k] = T.if_then_else(1 < k, B[k - 2], T.float32(0)) + A[k]",
    "it reads its result": "B[k] = T.if_then_else(0 < k, B[k - 1], T.float32(0)) + B[28 - k]",
}


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS.keys())
def test_a_loop_stays_as_it_is_if(body: str) -> None:
    func = program(body)
    assert not has_lanes(func)
    check_against_evaluation(func, rtol=1e-4)
