"""Loops are unrolled for registers, and as far as their code stays small."""

from __future__ import annotations

import pytest

from compiler.backends.cuda.text.unrolling import MOST_UNROLLED, loops_to_unroll
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
    Conditional,
    Expr,
    For,
    If,
    IntImm,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
    make_buffer,
)

ACROSS, STEP = Var("i"), Var("k")
A, SUMS = make_buffer("A", (1024,)), make_buffer("C_local", (1024,), scope="local")


def add(index: Expr) -> Store:
    """Return `C_local[i] += A[index]`."""
    total = BinOp("+", Load(SUMS, (ACROSS,)), Load(A, (index,)))
    return Store(SUMS, (ACROSS,), total)


def guarded(stmt: Stmt) -> If:
    return If(Compare("<", ACROSS, IntImm(3)), stmt)


def nest(body: Stmt, width: int, steps: int, kind: LoopKind = "serial") -> For:
    """Return `for k in unrolled(steps): for i in kind(width): body`."""
    return For(STEP, IntImm(steps), For(ACROSS, IntImm(width), body, kind), "unrolled")


def irregular(divisor: int) -> Expr:
    return BinOp("%", BinOp("//", ACROSS, IntImm(divisor)), IntImm(divisor))


@pytest.mark.parametrize(
    ("stmt", "expected"),
    [
        (nest(add(STEP), 64, 8), {ACROSS: 64, STEP: 8}),
        (nest(add(STEP), 64, 16), {ACROSS: 64, STEP: 8}),
        (nest(add(STEP), 64, 9), {ACROSS: 64, STEP: 3}),
        (nest(guarded(add(STEP)), 64, 8), {ACROSS: 64, STEP: 1}),
        (nest(add(STEP), 2000, 2), {ACROSS: 1, STEP: 2}),
        (nest(add(STEP), 2000, 2, "unrolled"), {ACROSS: 2000, STEP: 1}),
        (nest(guarded(add(irregular(3))), 100, 2), {ACROSS: 1, STEP: 2}),
        (For(STEP, IntImm(8), Store(A, (STEP,), Load(A, (STEP,)))), {}),
    ],
)
def test_copies_of_a_loop(stmt: For, expected: dict[Var, int]) -> None:
    assert loops_to_unroll(stmt) == expected


def test_a_condition_around_a_loop_counts_once() -> None:
    inside = For(ACROSS, IntImm(64), guarded(add(STEP)))
    around = guarded(For(ACROSS, IntImm(64), add(STEP)))
    most = MOST_UNROLLED // 64
    assert loops_to_unroll(For(STEP, IntImm(most), inside, "unrolled"))[STEP] == 1
    assert loops_to_unroll(For(STEP, IntImm(most), around, "unrolled"))[STEP] > 1


def test_equal_divisions_count_once() -> None:
    rows, columns = irregular(3), irregular(5)
    repeated = BinOp("+", columns, BinOp("*", rows, BinOp("+", columns, rows)))
    loop = For(ACROSS, IntImm(200), add(repeated))
    assert loops_to_unroll(loop) == {ACROSS: 200}
    distinct = BinOp("+", repeated, BinOp("*", irregular(7), irregular(11)))
    assert loops_to_unroll(For(ACROSS, IntImm(200), add(distinct))) == {ACROSS: 1}


def test_lanes_of_a_vector_share_what_does_not_depend_on_the_lane() -> None:
    def copies(condition_on: Expr) -> dict[Var, int]:
        inside = Compare("<", BinOp("//", condition_on, IntImm(3)), IntImm(20))
        value = Conditional(inside, Load(A, (ACROSS,)), Load(A, (STEP,)))
        index = BinOp("+", BinOp("*", ACROSS, IntImm(8)), STEP)
        lanes = For(STEP, IntImm(8), Store(SUMS, (index,), value), "vectorized")
        return loops_to_unroll(For(ACROSS, IntImm(60), lanes))

    assert copies(ACROSS) == {ACROSS: 60}
    assert copies(BinOp("+", ACROSS, STEP)) == {ACROSS: 1}
