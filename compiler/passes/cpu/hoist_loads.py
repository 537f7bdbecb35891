"""Hoist loads that do not change in a loop: evaluate them once, before it.

    for j in range(n):                          scale = rsqrt(S[i] / n + 1e-5)
        B[i, j] = A[i, j] * rsqrt(S[i] /  ->    for j in range(n):
                                n + 1e-5)           B[i, j] = A[i, j] * scale

Only expressions that the loop surely evaluates move: a load under a condition may be out of bounds
if the condition fails. Arithmetic without a load stays: code generation hoists it to the point at
which its operands are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Broadcast,
    Conditional,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Ramp,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import children, map_expr, map_stmt, walk

_KINDS = ("serial", "unrolled", "vectorized")


@dataclass(slots=True)
class _LoopRegion:
    """The statements of a loop, without those of its inner loops.

    `changing` holds what it stores and binds, including inner loops. `evaluated` holds the
    expressions that it evaluates each time. `named` holds what inner loops have moved out to it.
    """

    changing: set[object] = field(default_factory=set)
    evaluated: list[Expr] = field(default_factory=list)
    named: dict[Var, Expr] = field(default_factory=dict)


def hoist_loads(stmt: Stmt) -> Stmt:
    """Move loop-invariant loads out of their loops, as far out as possible."""
    return _visit(stmt, _LoopRegion(), is_sure=True)


def _visit(stmt: Stmt, region: _LoopRegion, *, is_sure: bool) -> Stmt:
    """Rewrite the loops of a statement, and record its effects; `is_sure` if it runs each time."""
    match stmt:
        case Store(buffer, indices, value):
            region.changing.add(buffer.data)
            if is_sure:
                region.evaluated += (*indices, value)
            return stmt
        case Allocate(buffer, _):
            region.changing.add(buffer.data)
        case Let(var, value, _):
            region.changing.add(var)
            if is_sure:
                region.evaluated.append(value)
        case If(condition):
            if is_sure:
                region.evaluated.append(condition)
            is_sure = False
        case For():
            return _loop(stmt, region, is_sure=is_sure)
        case _:
            pass
    return map_stmt(stmt, lambda child: _visit(child, region, is_sure=is_sure), lambda expr: expr)


def _loop(loop: For, region: _LoopRegion, *, is_sure: bool) -> Stmt:
    inner = _LoopRegion()
    body = _visit(loop.body, inner, is_sure=True)
    inner.changing.add(loop.var)
    region.changing |= inner.changing
    if loop.kind not in _KINDS or not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
        return replace(loop, body=body)
    invariants: dict[Expr, None] = {}
    for expr in inner.evaluated:
        _collect(expr, inner.changing, invariants)
    names = {expr: Var("invariant", dtype_of(expr)) for expr in invariants}
    moved = {v: e for v, e in inner.named.items() if _is_invariant(e, inner.changing)}
    result: Stmt = replace(loop, body=_without(body, names, moved))
    moved |= {var: expr for expr, var in names.items()}
    for var, expr in moved.items():
        result = Let(var, expr, result)
    if is_sure:
        region.named |= moved
    return result


def _without(stmt: Stmt, names: Mapping[Expr, Var], moved: Mapping[Var, Expr]) -> Stmt:
    """Replace expressions by their names, and drop their own `Let`s; inner loops stay."""
    if not names and not moved:
        return stmt

    def visit_expr(expr: Expr) -> Expr:
        return names[expr] if expr in names else map_expr(expr, visit_expr)

    def visit(node: Stmt) -> Stmt:
        if isinstance(node, For):
            return node
        if isinstance(node, Let) and node.var in moved:
            return visit(node.body)
        return map_stmt(node, visit, visit_expr)

    return visit(stmt)


def _collect(expr: Expr, changing: set[object], invariants: dict[Expr, None]) -> None:
    if _is_invariant(expr, changing):
        invariants[expr] = None
        return
    if isinstance(expr, Conditional):
        _collect(expr.condition, changing, invariants)
        return
    for child in children(expr):
        _collect(child, changing, invariants)  # type: ignore[arg-type]


def _is_invariant(expr: Expr, changing: set[object]) -> bool:
    loads = False
    for node in walk(expr):
        match node:
            case Var():
                if node in changing:
                    return False
            case Load():
                loads = True
                if node.buffer.data in changing:
                    return False
            case Ramp() | Broadcast():
                return False
            case _:
                pass
    return loads and dtype_of(expr) != "bool"
