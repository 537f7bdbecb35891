"""Simplify guards, and test them outside of the loops on which they do not depend.

    for i in unrolled(8):               if t < 125:
        for j in unrolled(8):               for i in unrolled(8):
            if t * 8 + i < 1000:    ->          for j in unrolled(8):
                C[i, j] += ...                      C[i, j] += ...

A tile that does not divide an extent has guards. If the part of a thread divides it, all elements
of the part are inside or all are outside: the limit and the steps of the other terms are multiples
of the part. Then a thread tests once, and its sums are as quick as those of whole tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from math import gcd

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Logic,
    Stmt,
    Var,
)
from compiler.ir.core.visit import map_stmt, walk


def simplify_guards(stmt: Stmt) -> Stmt:
    """Leave out the terms of guards that do not decide them."""
    return _simplify(stmt, {})


def _simplify(stmt: Stmt, ranges: Mapping[Var, int]) -> Stmt:
    if isinstance(stmt, For) and isinstance(stmt.extent, IntImm):
        ranges = {**ranges, stmt.var: stmt.extent.value}
    new = map_stmt(stmt, lambda child: _simplify(child, ranges), lambda expr: expr)
    if isinstance(new, If):
        return replace(new, condition=_simplified(new.condition, ranges))
    return new


def hoist_guards(stmt: Stmt) -> Stmt:
    """Move guards out of the loops of a thread on which they do not depend."""
    new = map_stmt(stmt, hoist_guards, lambda expr: expr)
    match new:
        case For(var, _, If(condition, then, None)) if _is_of_one_thread(new):
            outer, inner = _split(condition, var)
            if outer is None:
                return new
            body = then if inner is None else If(inner, then)
            return If(outer, replace(new, body=body))
        case _:
            return new


def _is_of_one_thread(loop: For) -> bool:
    """Return whether one thread runs all iterations of a loop, as often as the program says."""
    return loop.thread is None and not loop.annotations and loop.kind != "parallel"


def _split(condition: Expr, var: Var) -> tuple[Expr | None, Expr | None]:
    """Split a condition into what does not depend on a variable, and the rest."""
    outer: Expr | None = None
    inner: Expr | None = None
    for part in _parts(condition):
        if any(node is var or isinstance(node, Load) for node in walk(part)):
            inner = part if inner is None else Logic("and", inner, part)
        else:
            outer = part if outer is None else Logic("and", outer, part)
    return outer, inner


def _parts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Logic) and condition.op == "and":
        return [*_parts(condition.lhs), *_parts(condition.rhs)]
    return [condition]


def _simplified(condition: Expr, ranges: Mapping[Var, int]) -> Expr:
    parts = [_coarse(part, ranges) for part in _parts(condition)]
    return reduce(lambda a, b: Logic("and", a, b), parts)


def _coarse(condition: Expr, ranges: Mapping[Var, int]) -> Expr:
    """Return a comparison without the terms that do not decide it.

    In `unit * coarse + fine < unit * limit` with `fine` from 0 to `unit - 1`, they are `fine`.
    """
    match condition:
        case Compare("<", lhs, IntImm(limit)):
            pass
        case _:
            return condition
    form = normal(lhs, dict(ranges))
    scales = sorted({abs(scale) for _, scale in form.terms}, reverse=True)
    for position in range(len(scales), 0, -1):
        unit = reduce(gcd, scales[:position], limit)
        coarse = tuple((a, s // unit) for a, s in form.terms if abs(s) in scales[:position])
        fine = tuple((a, s) for a, s in form.terms if abs(s) not in scales[:position])
        interval = affine_bounds(Affine(fine, form.const % unit, form.dtype), dict(ranges))
        if unit > 1 and interval is not None and interval[0] >= 0 and interval[1] < unit:
            whole = Affine(coarse, form.const // unit, form.dtype)
            return _below(simplify(whole.to_expr(), dict(ranges)), limit // unit)
    return condition


def _below(lhs: Expr, limit: int) -> Expr:
    """Return `lhs < limit`; of a quotient, the comparison of its dividend."""
    match lhs:
        case BinOp("//", dividend, IntImm(divisor)) if divisor > 0:
            return _below(dividend, limit * divisor)
        case _:
            return Compare("<", lhs, IntImm(limit, dtype_of(lhs)))
