"""Replace symbolic extents by numbers where conditions leave only one.

    if M <= 1:                          if M <= 1:
        for i in range(M):                  for i in range(1):
            C[i] = ...          ->              C[0] = ...
    else: ...                           else: ...

A dispatcher calls the kernel of a single size under such a condition. The code of that branch is as
good as if the program had that size only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from compiler.ir.analysis.specialize import replaced_in
from compiler.ir.arith.bounds import Interval
from compiler.ir.core.nodes import (
    BlockRealize,
    Compare,
    CompareOp,
    Expr,
    If,
    IntImm,
    Logic,
    Seq,
    Stmt,
    Var,
    seq,
)

Limits: TypeAlias = Mapping[Var, Interval]
_NEGATED: dict[CompareOp, CompareOp] = {"<=": ">", ">": "<=", "<": ">=", ">=": "<", "!=": "=="}


def fix_sizes(stmt: Stmt) -> Stmt:
    """Replace symbols in the branches outside of loops and blocks."""
    if isinstance(stmt, BlockRealize):  # the root
        body = _visit(stmt.block.body, {})
        return stmt if body is stmt.block.body else _with_body(stmt, body)
    return _visit(stmt, {})


def _with_body(realize: BlockRealize, body: Stmt) -> BlockRealize:
    return replace(realize, block=replace(realize.block, body=body))


def _visit(stmt: Stmt, limits: Limits) -> Stmt:
    match stmt:
        case Seq(stmts):
            return seq(*(_visit(child, limits) for child in stmts))
        case If(condition, then, otherwise):
            new = _branch(then, limits, _narrowed(condition, limits, holds=True))
            rest = None
            if otherwise is not None:
                rest = _branch(otherwise, limits, _narrowed(condition, limits, holds=False))
            is_same = new is then and rest is otherwise
            return stmt if is_same else If(condition, new, rest)
        case _:
            return stmt


def _branch(stmt: Stmt, outside: Limits, limits: Limits) -> Stmt:
    only = {
        var: IntImm(low, var.dtype)
        for var, (low, high) in limits.items()
        if low == high and limits[var] != outside.get(var) and var.dtype != "handle"
    }
    return _visit(replaced_in(stmt, only) if only else stmt, limits)


def _narrowed(condition: Expr, limits: Limits, *, holds: bool) -> Limits:
    """Return the limits of symbols under a condition, or where it does not hold."""
    narrowed = dict(limits)
    for op, var, value in _comparisons(condition, holds=holds):
        assert var.limits is not None
        low, high = narrowed.get(var, var.limits)
        match op:
            case "<=":
                high = min(high, value)
            case "<":
                high = min(high, value - 1)
            case ">=":
                low = max(low, value)
            case ">":
                low = max(low, value + 1)
            case "==":
                low, high = max(low, value), min(high, value)
            case _:
                pass
        narrowed[var] = low, high
    return narrowed


def _comparisons(condition: Expr, *, holds: bool) -> Iterator[tuple[CompareOp, Var, int]]:
    """Yield the comparisons of symbols with numbers that follow from a condition."""
    match condition:
        case Logic(op, lhs, rhs) if (op == "and") == holds:
            yield from _comparisons(lhs, holds=holds)
            yield from _comparisons(rhs, holds=holds)
        case Compare(op, Var() as var, IntImm(value)) if var.limits is not None:
            if holds:
                yield op, var, value
            elif op in _NEGATED:
                yield _NEGATED[op], var, value
        case _:
            pass
