"""Small programs over three buffers, and why they are refused."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    FloatImm,
    For,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError, verify

A, B, N = make_buffer("A", (8,)), make_buffer("B", (8,)), make_buffer("N", (8,), "int32")


ZERO = FloatImm(0.0)


i, j = Var("i"), Var("j")


def func_of(body: Stmt, *allocated: Buffer) -> PrimFunc:
    root = Block("root", (), (), (), body, alloc_buffers=allocated)
    return PrimFunc("main", (A, B, N), BlockRealize((), TRUE, root))


def num(value: int) -> IntImm:
    return IntImm(value)


def plus(lhs: Expr, rhs: int | Expr) -> Expr:
    return BinOp("+", lhs, num(rhs) if isinstance(rhs, int) else rhs)


def refusal(func: PrimFunc) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        verify(func)
    return caught.value


def looped(value: Expr, *, index: Expr = i) -> PrimFunc:
    """Return `for i in range(8): for j in range(4): B[index] = value`."""
    return func_of(For(i, IntImm(8), For(j, IntImm(4), Store(B, (index,), value))))


def at(index: Expr) -> Load:
    return Load(A, (index,))
