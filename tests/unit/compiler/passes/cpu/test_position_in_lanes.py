"""Positions that are found in lanes are those that one step after another finds."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.driver import build, lower
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import For
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, check_against_evaluation


def in_lanes(func: PrimFunc, lanes: int) -> PrimFunc:
    """Return a program that searches rows in lanes."""
    schedule = Schedule(func)
    block = schedule.get_block("B_temp")
    steps = schedule.get_loops(block)[1]
    schedule.annotate(steps, KEY, lanes)
    schedule.decompose_reduction(block, steps)
    return schedule.func


def has_lanes(func: PrimFunc) -> bool:
    stmt = lower(func, level(3))
    return any(isinstance(n, For) and n.var.name == "lane" for n in walk_stmts(stmt))


def positions(func: PrimFunc, rows: np.ndarray) -> np.ndarray:
    """Return what a compiled program finds."""
    module = build(func, ONE_CORE)
    out = np.full(len(rows), -7, np.int32)
    module(rows, out)
    module.close()
    return out


@pytest.mark.parametrize("lanes", [8, 32])
@pytest.mark.parametrize("extent", [7, 8, 32, 37, 131])
def test_the_first_of_equal_values_counts(extent: int, lanes: int) -> None:
    func = in_lanes(ops.argmax(6, extent, axis=1), lanes)
    assert has_lanes(func) == (extent >= 8)
    rows = np.random.default_rng(extent).integers(-2, 3, (6, extent)).astype(np.float32)
    rows[0] = 1
    rows[1, -1], rows[2, 0] = 9, 9
    np.testing.assert_array_equal(positions(func, rows), rows.argmax(1))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int64"])
def test_each_type_has_its_worst_value(dtype: DType) -> None:
    rows = np.random.default_rng(0).integers(0, 3, (5, 45)).astype(dtype)
    for operator, expected in ((ops.argmax, rows.argmax(1)), (ops.argmin, rows.argmin(1))):
        func = in_lanes(operator(5, 45, axis=1, dtype=dtype), 8)
        assert has_lanes(func)
        np.testing.assert_array_equal(positions(func, rows), expected)


def test_infinite_values_and_nan_have_positions() -> None:
    func = ops.argmax(4, 45, axis=1)
    rows = np.random.default_rng(0).standard_normal((4, 45)).astype(np.float32)
    rows[0] = -np.inf
    rows[1, 40] = np.inf
    rows[2] = np.nan
    rows[3, 5::7] = np.nan
    for program in (func, in_lanes(func, 8)):
        result = positions(program, rows)
        np.testing.assert_array_equal(result[:2], [0, 40])
        assert ((result >= 0) & (result < 45)).all()


def test_a_position_that_falls_keeps_the_loop() -> None:
    func = parse(
        f"""
@T.prim_func
def main(A: T.Buffer((33,), "float32"), N: T.Buffer((1,), "int32"), M: T.Buffer((1,), "float32")):
    N[0] = -1
    M[0] = T.min_value("float32")
    for k in T.serial(33, annotations={{"{KEY}": 8}}):
        n: T.let[T.int32] = T.Select(
            M[0] > A[k] or M[0] == A[k] and N[0] < 32 - k, N[0], 32 - k
        )
        m: T.let[T.float32] = T.Select(M[0] > A[k], M[0], A[k])
        N[0] = n
        M[0] = m
"""
    )
    assert not has_lanes(func)
    check_against_evaluation(func)
