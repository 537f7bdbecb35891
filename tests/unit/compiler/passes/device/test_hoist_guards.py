"""Guards outside of the loops of a thread, against the conditions that they replace."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Stmt,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.visit import substitute, walk_stmts
from compiler.passes.device.hoist_guards import hoist_guards, simplify_guards

THREAD, ROW, COLUMN = Var("t"), Var("i"), Var("j")
OUT = make_buffer("C", (512,), "int32")
ONE = Store(OUT, (IntImm(0),), IntImm(1))


def total(*terms: tuple[Var, int], const: int = 0) -> Expr:
    expr: Expr = IntImm(const)
    for var, scale in terms:
        expr = BinOp("+", expr, BinOp("*", var, IntImm(scale)))
    return expr


def nest(condition: Expr, extents: dict[Var, int]) -> Stmt:
    stmt: Stmt = If(condition, ONE)
    for var, extent in reversed(extents.items()):
        thread = "threadIdx.x" if var is THREAD else None
        stmt = For(var, IntImm(extent), stmt, "thread_binding" if thread else "serial", thread)
    return stmt


def hoisted_guards(stmt: Stmt) -> Stmt:
    return hoist_guards(simplify_guards(stmt))


def runs(stmt: Stmt) -> int:
    """Return how often the store of a nest runs."""
    match stmt:
        case For(var, IntImm(extent), body):
            return sum(runs(substitute(body, {var: IntImm(n)})) for n in range(extent))
        case If(condition, then, None):
            return runs(then) if holds(condition) else 0
        case _:
            return 1


def holds(condition: Expr) -> bool:
    match simplify(condition):
        case Compare("<", IntImm(lhs), IntImm(rhs)):
            return lhs < rhs
        case known:
            return known == simplify(Compare("<", IntImm(0), IntImm(1)))


def test_a_part_that_divides_the_limit_is_tested_once() -> None:
    hoisted = hoisted_guards(
        nest(Compare("<", total((THREAD, 8), (ROW, 1)), IntImm(40)), {THREAD: 6, ROW: 8})
    )
    assert hoisted == For(
        THREAD,
        IntImm(6),
        If(Compare("<", THREAD, IntImm(5)), For(ROW, IntImm(8), ONE)),
        "thread_binding",
        "threadIdx.x",
    )


def test_a_limit_of_a_quotient_is_one_of_its_dividend() -> None:
    half = BinOp("//", THREAD, IntImm(2))
    guard = Compare("<", BinOp("+", BinOp("*", half, IntImm(8)), ROW), IntImm(24))
    (condition,) = (
        node.condition
        for node in walk_stmts(simplify_guards(nest(guard, {THREAD: 8, ROW: 8})))
        if isinstance(node, If)
    )
    assert condition == Compare("<", THREAD, IntImm(6))


@pytest.mark.parametrize("limit", [39, 41])
def test_a_part_that_ends_inside_keeps_its_test(limit: int) -> None:
    stmt = nest(Compare("<", total((THREAD, 8), (ROW, 1)), IntImm(limit)), {THREAD: 6, ROW: 8})
    assert hoisted_guards(stmt) == stmt


def test_loops_over_threads_stay_outside() -> None:
    stmt = nest(Compare("<", ROW, IntImm(3)), {ROW: 4, THREAD: 6})
    assert hoisted_guards(stmt) == stmt


@given(
    scales=st.tuples(*[st.sampled_from([1, 2, 3, 4, 6, 8, 12, -2])] * 3),
    limit=st.integers(-8, 60),
    const=st.integers(-5, 20),
)
def test_the_same_points_run(scales: tuple[int, int, int], limit: int, const: int) -> None:
    extents = {THREAD: 3, ROW: 4, COLUMN: 2}
    lhs = total(*zip(extents, scales, strict=True), const=const)
    stmt = nest(Compare("<", lhs, IntImm(limit)), extents)
    expected = sum(
        sum(s * n for s, n in zip(scales, point, strict=True)) + const < limit
        for point in product(*map(range, extents.values()))
    )
    hoisted = hoisted_guards(stmt)
    assert sum(isinstance(node, If) for node in walk_stmts(hoisted)) <= 2
    assert runs(hoisted) == expected
