"""Buffers shrink only if each iteration writes first what it reads."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import build, lower
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    make_buffer,
    seq,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import verify
from tests.targets import level

A, C, U = (make_buffer(name, (12,)) for name in "ACU")


i, j = Var("i"), Var("j")


ZERO = FloatImm(0.0)


def program(body: Stmt) -> PrimFunc:
    root = Block("root", (), (), (), body, alloc_buffers=(U,))
    func = PrimFunc("main", (A, C), BlockRealize((), TRUE, root))
    verify(func)
    return func


def plus(lhs: Expr, rhs: Expr) -> Expr:
    return BinOp("+", lhs, rhs)


def at(index: Expr, divisor: int) -> tuple[Expr, ...]:
    return (BinOp("%", index, IntImm(divisor)),)


def running_sum() -> Stmt:
    """Return `U[i + 1] = (0 if i == 0 else U[i]) + A[i]`, shown in C."""
    before = Conditional(Compare("==", i, IntImm(0)), ZERO, Load(U, (i,)))
    step = Store(U, (plus(i, IntImm(1)),), plus(before, Load(A, (i,))))
    return For(i, IntImm(8), seq(step, Store(C, (i,), Load(U, (plus(i, IntImm(1)),)))))


def two_sums() -> Stmt:
    """Return the sums over even and over odd places, each started in its first turn."""
    place = at(i, 2)
    start = If(Compare("<", i, IntImm(2)), Store(U, place, ZERO))
    step = Store(U, place, plus(Load(U, place), Load(A, (i,))))
    return For(i, IntImm(8), seq(start, step, Store(C, (i,), Load(U, place))))


def otherwise_kept() -> Stmt:
    """Return a loop that stores in its first iteration: all others take the other branch."""
    start = If(Compare(">=", i, IntImm(1)), Store(C, (i,), ZERO), Store(U, at(i, 1), Load(A, (i,))))
    return For(i, IntImm(8), seq(start, Store(C, (i,), Load(U, at(i, 1)))))


def one_loop_twice() -> Stmt:
    """Return a loop object that stands in two places: the second run reads what the first left."""
    is_first = Compare("==", Load(C, (i,)), ZERO)
    step = Store(U, (i,), plus(Conditional(is_first, ZERO, Load(U, (i,))), Load(A, (i,))))
    loop = For(i, IntImm(8), seq(step, Store(C, (i,), Load(U, (i,)))))
    return seq(loop, loop)


@pytest.mark.parametrize("body", [running_sum(), two_sums(), otherwise_kept(), one_loop_twice()])
def test_what_one_iteration_leaves_for_another_is_kept(body: Stmt) -> None:
    func = program(body)
    a, c = np.arange(1, 13, dtype=np.float32), np.zeros(12, np.float32)
    expected = evaluate(func, {"A": a, "C": c})["C"]
    build(func, "cpu -num-cores=1")(a, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("trim", [False, True])
def test_what_each_iteration_writes_first_shrinks(trim: bool) -> None:
    value = plus(BinOp("*", i, IntImm(4)), j)
    fill: Stmt = Store(U, (value,), Load(A, (value,)))
    show: Stmt = Store(C, (value,), Load(U, (value,)))
    if trim:
        fill, show = (If(Compare("<", value, IntImm(10)), s) for s in (fill, show))
    body = For(i, IntImm(3), seq(For(j, IntImm(4), fill), For(j, IntImm(4), show)))
    lowered = lower(program(body), level(3))
    (allocate,) = (node for node in walk_stmts(lowered) if isinstance(node, Allocate))
    assert static_shape(allocate.buffer) == (4,)


N, M = (make_buffer(name, (8,), "int32") for name in "NM")


def gathered(read: Buffer) -> Stmt:
    """Return a loop that writes U[N[i] % 12] and reads an element that another buffer names."""
    written = (BinOp("%", Load(N, (i,)), IntImm(12)),)
    step = Store(U, written, Load(A, (i,)))
    place = (BinOp("%", Load(read, (i,)), IntImm(12)),)
    root = Block(
        "root",
        (),
        (),
        (),
        For(i, IntImm(8), seq(step, Store(C, (i,), Load(U, place)))),
        alloc_buffers=(U,),
    )
    return lower(PrimFunc("main", (A, N, M, C), BlockRealize((), TRUE, root)), level(3))


def test_an_unknown_element_of_an_iteration_before_is_kept() -> None:
    assert isinstance(gathered(M), Allocate)


def test_an_unknown_element_that_the_iteration_wrote_is_its_own() -> None:
    lowered = gathered(N)
    assert isinstance(lowered, For)
    assert any(isinstance(node, Allocate) for node in walk_stmts(lowered.body))
