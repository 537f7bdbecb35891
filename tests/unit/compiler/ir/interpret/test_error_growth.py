"""A tolerance follows from what a program makes of rounding errors, and defects still show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler import te
from compiler.ir.core.nodes import BinOp, BlockRealize, For, IntImm, Load, Stmt, Store
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt
from compiler.ir.interpret.error_growth import check_case
from compiler.ir.interpret.oracle.oracle import (
    Mismatch,
    compare,
    interpret,
    random_inputs,
    tolerance,
)
from compiler.script import parse

SUM = """
@T.prim_func
def main(A: T.Buffer((4, 3072), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = T.float32(0)
        for k in range(3072):
            B[i] = B[i] + A[i, k]
"""


def gru(steps: int = 24, n: int = 48) -> PrimFunc:
    """Return a gated recurrent unit: inputs of ordinary size make it chaotic."""
    X, W = te.placeholder((steps, 3, n), name="X"), te.placeholder((3, n, n), name="W")
    state = te.placeholder((steps, n), name="state")
    k, m = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="m")
    first = te.compute((1, n), lambda _, i: 0.0, name="first")
    mixed = te.compute(
        (steps, 2, n), lambda t, g, i: te.sum(W[g, i, k] * state[t - 1, k], axis=k), name="mixed"
    )
    update = te.compute((steps, n), lambda t, i: te.sigmoid(mixed[t, 0, i] + X[t, 0, i]), name="z")
    kept = te.compute(
        (steps, n),
        lambda t, i: te.sigmoid(mixed[t, 1, i] + X[t, 1, i]) * state[t - 1, i],
        name="kept",
    )
    new = te.compute((steps, n), lambda t, i: te.sum(W[2, i, m] * kept[t, m], axis=m), name="new")
    following = te.compute(
        (steps, n),
        lambda t, i: (
            (1.0 - update[t, i]) * state[t - 1, i] + update[t, i] * te.tanh(new[t, i] + X[t, 2, i])
        ),
        name="following",
    )
    return te.create_prim_func([X, W, te.scan(first, following, state, name="H")])


def error_of(func: PrimFunc, kernel_of: PrimFunc | None = None) -> float:
    """Check a kernel of a program, or of a mutant of it, as measuring does."""
    case = check_case(func, 0)
    arrays: dict[str, Any] = {
        b.name: case.inputs[b.name].copy() if b.name in case.inputs else case.expected[b.name] * 0
        for b in func.buffers
    }
    lw.build(kernel_of or func, "cpu -num-cores=1")(*arrays.values())
    return compare(func, arrays, case.expected, case.growth)


def test_a_chaotic_recurrence_is_checked_with_inputs_that_calm_it() -> None:
    func = gru()
    ordinary = random_inputs(func, 0)
    nudged = interpret(func, ordinary, nudge=2.0**-23)
    wild = np.abs(nudged["H"] - interpret(func, ordinary)["H"]).max()
    assert wild > 4 * tolerance(func), "the program is meant to be chaotic"
    case = check_case(func, 0)
    assert 0 < case.growth["H"] < tolerance(func)
    assert np.abs(case.inputs["W"]).max() < np.abs(ordinary["W"]).max()
    assert error_of(func) < 1e-5


def test_a_sum_without_blocks_is_allowed_the_rounding_of_its_terms() -> None:
    func = parse(SUM)
    assert tolerance(func) == pytest.approx(2**-23 * (16 + 8 * 3072**0.5), rel=1e-3)
    assert error_of(func) < tolerance(func)


def test_a_sum_that_begins_anew_in_a_loop_has_the_terms_of_one_round() -> None:
    text = SUM.replace("B: T.Buffer((4,)", "B: T.Buffer((1,)").replace("B[i]", "B[0]")
    assert tolerance(parse(text)) == tolerance(parse(SUM))


def test_a_sum_of_a_length_that_varies_is_allowed_the_longest() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        for k in range(i + 1):
            with T.sblock("B"):
                vi = T.axis.spatial(16, i)
                vk = T.axis.reduce(i + 1, k)
                T.reads(A[vi, vk])
                T.writes(B[vi])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
"""
    assert tolerance(parse(text)) == pytest.approx(2**-23 * (16 + 8 * 16**0.5))


def test_cancellation_has_the_tolerance_that_it_needs() -> None:
    A = te.placeholder((64,), name="A")
    far = te.compute((64,), lambda i: A[i] * A[i] + 1000.0, name="far")
    func = te.create_prim_func([A, te.compute((64,), lambda i: far[i] - 1000.0, name="B")])
    case = check_case(func, 0)
    off = {"B": case.expected["B"] * np.float32(1 + 2**-19)}
    with pytest.raises(Mismatch):
        compare(func, {"B": case.expected["B"] * np.float32(1.01)}, case.expected, case.growth)
    compare(func, off, case.expected, case.growth)


def changed(func: PrimFunc, change: Callable[[Stmt], Stmt | None]) -> PrimFunc:
    """Return a program with the last statement replaced that a function has a replacement for."""
    places = 0

    def count(stmt: Stmt) -> Stmt:
        nonlocal places
        places += change(stmt) is not None
        return map_stmt(stmt, count, lambda expr: expr)

    count(func.body)

    def visit(stmt: Stmt) -> Stmt:
        nonlocal places
        new = change(stmt)
        if new is not None:
            places -= 1
            if places == 0:
                return new
        return map_stmt(stmt, visit, lambda expr: expr)

    body = visit(func.body)
    assert isinstance(body, BlockRealize)
    assert body is not func.body
    return PrimFunc(func.name, func.params, body, func.attrs)


def fewer(name: str) -> Callable[[Stmt], Stmt | None]:
    def change(stmt: Stmt) -> Stmt | None:
        if not (isinstance(stmt, For) and stmt.var.name == name):
            return None
        assert isinstance(stmt.extent, IntImm)
        return For(stmt.var, IntImm(stmt.extent.value - 1), stmt.body)

    return change


def one_off(stmt: Stmt) -> Stmt | None:
    """Read the neighbour of an element, the last one's excepted."""
    if not (isinstance(stmt, Store) and isinstance(stmt.value, BinOp)):
        return None
    load = stmt.value.rhs
    if not (isinstance(load, Load) and load.buffer.name == "A"):
        return None
    row, column = load.indices
    moved = BinOp("min", BinOp("+", column, IntImm(1)), IntImm(3071))
    return Store(
        stmt.buffer, stmt.indices, BinOp("+", stmt.value.lhs, Load(load.buffer, (row, moved)))
    )


MUTANTS = {
    "one of 3072 terms is left out": (parse(SUM), fewer("k")),
    "reads are one element off": (parse(SUM), one_off),
    "the last step of a recurrence is left out": (gru(), fewer("t")),
    "one term of a recurrence's products is left out": (gru(), fewer("m")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_is_beyond_the_tolerance(name: str) -> None:
    func, change = MUTANTS[name]
    with pytest.raises(Mismatch):
        error_of(func, changed(func, change))
