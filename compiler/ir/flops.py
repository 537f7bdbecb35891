"""Count the floating-point operations of a program."""

from __future__ import annotations

from typing import assert_never

from compiler.ir.dtypes import is_float
from compiler.ir.expr_types import dtype_of
from compiler.ir.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Call,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    Let,
    Seq,
    Stmt,
    Store,
    static_int,
)
from compiler.ir.program import PrimFunc
from compiler.ir.visit import children


def flops(func: PrimFunc) -> int:
    """Return how many floating-point operations one run does.

    An arithmetic operation, a minimum or maximum, and a call of a function count one each;
    comparisons, conversions, arithmetic on indices and initialisations count nothing. Of a choice
    the dearer side counts, and predicates are taken to hold.

    Raises:
        TypeError: If it is no function.
    """
    if not isinstance(func, PrimFunc):
        raise TypeError(f"expected a PrimFunc, got a {type(func).__name__}")
    return _stmt(func.body)


def _stmt(stmt: Stmt) -> int:
    match stmt:
        case Store(_, _, value):
            return _expr(value)
        case Evaluate(value):
            return _expr(value)
        case Let(_, value, body):
            return _expr(value) + _stmt(body)
        case Seq(stmts):
            return sum(_stmt(s) for s in stmts)
        case If(condition, then, otherwise):
            sides = (_stmt(then), 0 if otherwise is None else _stmt(otherwise))
            return _expr(condition) + max(sides)
        case For(_, extent, body):
            return static_int(extent) * _stmt(body)
        case BlockRealize(_, _, block):
            return _stmt(block.body)
        case Allocate(_, body):
            return _stmt(body)
        case _:
            assert_never(stmt)


def _expr(expr: Expr) -> int:
    if isinstance(expr, Conditional):
        return _expr(expr.condition) + max(_expr(expr.then), _expr(expr.otherwise))
    own = isinstance(expr, BinOp | Call) and is_float(dtype_of(expr))
    inner = [_expr(child) for child in children(expr)]  # type: ignore[arg-type]
    return int(own) + sum(inner)
