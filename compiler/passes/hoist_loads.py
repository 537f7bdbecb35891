"""Evaluate once, before a loop, what is loaded there and does not change in it.

    for j in range(n):                          scale = rsqrt(S[i] / n + 1e-5)
        B[i, j] = A[i, j] * rsqrt(S[i] /  ->    for j in range(n):
                                n + 1e-5)           B[i, j] = A[i, j] * scale

Only what the loop surely evaluates moves: a load under a condition may be out of bounds where the
condition does not hold. Arithmetic without a load stays: code generation puts it where its operands
are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.ir.nodes import (
    Allocate,
    Broadcast,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Ramp,
    Seq,
    Stmt,
    Store,
    Var,
    dtype_of,
)
from compiler.ir.visit import children, map_expr, map_stmt, walk

_KINDS = ("serial", "unrolled", "vectorized")


def hoist_loads(stmt: Stmt) -> Stmt:
    """Move what does not change in a loop out of it, as far as it goes."""
    if isinstance(stmt, For) and stmt.kind in _KINDS and _runs(stmt):
        invariants = _invariants(stmt)
        names = {expr: Var("invariant", dtype_of(expr)) for expr in invariants}
        loop = _renamed(stmt, names) if names else stmt
        loop = map_stmt(loop, hoist_loads, lambda expr: expr)
        for expr, name in names.items():
            loop = Let(name, expr, loop)
        return loop
    return map_stmt(stmt, hoist_loads, lambda expr: expr)


def _runs(loop: For) -> bool:
    return isinstance(loop.extent, IntImm) and loop.extent.value > 0


def _renamed(loop: For, names: dict[Expr, Var]) -> Stmt:
    def visit_expr(expr: Expr) -> Expr:
        return names[expr] if expr in names else map_expr(expr, visit_expr)

    def visit(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, visit, visit_expr)

    return visit(loop)


def _invariants(loop: For) -> list[Expr]:
    """Return the largest expressions of a loop that load, surely run, and do not change in it."""
    changing: set[object] = set()
    for node in walk(loop):
        match node:
            case Store(buffer, _, _) | Allocate(buffer, _):
                changing.add(buffer.data)
            case For(var, _, _) | Let(var, _, _):
                changing.add(var)
            case _:
                pass
    found: dict[Expr, None] = {}
    for expr in _surely_evaluated(loop.body):
        _collect(expr, changing, found)
    return list(found)


def _surely_evaluated(stmt: Stmt) -> Iterator[Expr]:
    """Yield the expressions that each run of a statement evaluates."""
    match stmt:
        case Store(_, indices, value):
            yield from (*indices, value)
        case Seq(stmts):
            for each in stmts:
                yield from _surely_evaluated(each)
        case Allocate(_, body):
            yield from _surely_evaluated(body)
        case Let(_, value, body):
            yield value
            yield from _surely_evaluated(body)
        case For(body=body) if _runs(stmt):
            yield from _surely_evaluated(body)
        case If(condition):
            yield condition
        case Evaluate() | _:
            pass


def _collect(expr: Expr, changing: set[object], found: dict[Expr, None]) -> None:
    if _is_invariant(expr, changing):
        found[expr] = None
        return
    if isinstance(expr, Conditional):
        _collect(expr.condition, changing, found)
        return
    for child in children(expr):
        _collect(child, changing, found)  # type: ignore[arg-type]


def _is_invariant(expr: Expr, changing: set[object]) -> bool:
    loads = False
    for node in walk(expr):
        match node:
            case Load(buffer, _):
                loads = True
                if buffer.data in changing:
                    return False
            case Ramp() | Broadcast():
                return False
            case Var() if node in changing:
                return False
            case _:
                pass
    return loads and dtype_of(expr) != "bool"
