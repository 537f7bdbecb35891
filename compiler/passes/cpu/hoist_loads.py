"""Hoist loads that do not change in a loop: evaluate them once, before it.

    for j in range(n):                          scale = rsqrt(S[i] / n + 1e-5)
        B[i, j] = A[i, j] * rsqrt(S[i] /  ->    for j in range(n):
                                n + 1e-5)           B[i, j] = A[i, j] * scale

Only expressions that the loop surely evaluates move: a load under a condition may be out of bounds
if the condition fails. Arithmetic without a load stays: code generation hoists it to the point at
which its operands are known.

Unrolled loops of a single iteration disappear. So do others whose iterations each evaluate a costly
expression that an outer loop does not change, such as the scales of some rows:

    for j in range(n):                             scale0, scale1 = rsqrt(S[0]), rsqrt(S[1])
        for i in unroll(2):                        for j in range(n):
            B[i, j] = A[i, j] * rsqrt(S[i])  ->        B[0, j] = A[0, j] * scale0
                                                       B[1, j] = A[1, j] * scale1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Broadcast,
    Call,
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
    seq,
)
from compiler.ir.core.visit import children, map_expr, map_stmt, substitute, walk, walk_stmts

_KINDS = ("serial", "unrolled", "vectorized")
_MAX_STATEMENTS = 1024
"""Statements that an unrolled loop becomes, at most: tiles of rows have a few dozen. Chosen."""


@dataclass(slots=True)
class _LoopRegion:
    """The statements of a loop, without those of its inner loops.

    `var` is its variable; None for the whole program. `changing` holds what it stores and binds,
    including inner loops. `evaluated` holds the expressions that it evaluates each time. `named`
    holds what inner loops have moved out to it.
    """

    var: Var | None = None
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
        case For(var, IntImm(1) as extent, body, "unrolled") if not stmt.annotations:
            first = substitute(body, {var: IntImm(0, extent.dtype)})
            return _visit(first, region, is_sure=is_sure)
        case For():
            return _loop(stmt, region, is_sure=is_sure)
        case _:
            pass
    return map_stmt(stmt, lambda child: _visit(child, region, is_sure=is_sure), lambda expr: expr)


def _loop(loop: For, region: _LoopRegion, *, is_sure: bool) -> Stmt:
    inner = _LoopRegion(loop.var)
    body = _visit(loop.body, inner, is_sure=True)
    if _frees_costly(loop, body, inner, region.var):
        return _visit(_iterations(loop), region, is_sure=is_sure)
    inner.changing.add(loop.var)
    region.changing |= inner.changing
    if loop.kind not in _KINDS or not isinstance(loop.extent, IntImm) or loop.extent.value < 1:
        return _with_body(loop, body)
    invariants: dict[Expr, None] = {}
    for expr in inner.evaluated:
        invariants.update(dict.fromkeys(_invariants(expr, inner.changing).largest))
    names = {expr: Var("invariant", dtype_of(expr)) for expr in invariants}
    moved = {
        var: value
        for var, value in inner.named.items()
        if any(part is value for part in _invariants(value, inner.changing).largest)
    }
    result: Stmt = _with_body(loop, _without(body, names, moved))
    moved |= {var: expr for expr, var in names.items()}
    for var, expr in moved.items():
        result = Let(var, expr, result)
    if is_sure:
        region.named |= moved
    return result


def _frees_costly(loop: For, body: Stmt, inner: _LoopRegion, around: Var | None) -> bool:
    """Return whether iterations of an unrolled loop evaluate what the loop around does not change.

    Args:
        loop: The loop.
        body: Its body after the same was done for inner loops.
        inner: The statements of the loop.
        around: The variable of the loop around it.
    """
    if around is None or loop.kind != "unrolled" or loop.annotations:
        return False
    changing = inner.changing | {around}
    exprs = [*inner.evaluated, *inner.named.values()]
    parts = [part for expr in exprs for part in _invariants(expr, changing).largest]
    if not any(map(_is_costly, parts)) or not isinstance(loop.extent, IntImm):
        return False
    num_statements = loop.extent.value * sum(1 for _ in walk_stmts(body))
    return 0 < num_statements <= _MAX_STATEMENTS


def _iterations(loop: For) -> Stmt:
    """Return the iterations of a loop with a known extent, one after another."""
    assert isinstance(loop.extent, IntImm)
    indices = (IntImm(index, loop.extent.dtype) for index in range(loop.extent.value))
    return seq(*(substitute(loop.body, {loop.var: index}) for index in indices))


def _is_costly(expr: Expr) -> bool:
    """Return whether the expression calls a function or divides floats."""
    return any(isinstance(n, Call) or (isinstance(n, BinOp) and n.op == "/") for n in walk(expr))


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


def _with_body(loop: For, body: Stmt) -> For:
    return loop if body is loop.body else replace(loop, body=body)


@dataclass(frozen=True, slots=True)
class _Invariants:
    """What a loop does not change in an expression.

    Attributes:
        is_whole: Whether it changes nothing in it.
        has_load: Whether the expression loads from a buffer.
        largest: The largest parts with loads that it does not change and surely evaluates.
    """

    is_whole: bool
    has_load: bool
    largest: list[Expr]


_CHANGED = _Invariants(is_whole=False, has_load=False, largest=[])
_UNCHANGED = _Invariants(is_whole=True, has_load=False, largest=[])


def _invariants(expr: Expr, changing: set[object]) -> _Invariants:
    """Find the invariants of an expression in one pass, from its leaves up."""
    if isinstance(expr, Var):
        return _CHANGED if expr in changing else _UNCHANGED
    parts = [_invariants(child, changing) for child in children(expr)]  # type: ignore[arg-type]
    if not parts and not isinstance(expr, Load):
        return _UNCHANGED
    is_whole = all(part.is_whole for part in parts) and not isinstance(expr, Ramp | Broadcast)
    has_load = any(part.has_load for part in parts)
    if isinstance(expr, Load):
        is_whole, has_load = is_whole and expr.buffer.data not in changing, True
    if is_whole and has_load and dtype_of(expr) != "bool":
        return _Invariants(is_whole, has_load, [expr])
    if isinstance(expr, Conditional):
        parts = parts[:1]  # the only one that it evaluates each time
    return _Invariants(is_whole, has_load, [e for part in parts for e in part.largest])
