"""Test once for each row of a padding whether it lies in the image (loop unswitching).

    for x in vectorized(58):                      if 1 <= y and y < 57:
        P[y, x] = A[y - 1, x - 1]                     for x in vectorized(58):
            if 1 <= y and y < 57       ->                 P[y, x] = A[y - 1, x - 1]
            and 1 <= x and x < 57                             if 1 <= x and x < 57 else 0
            else 0                                else:
                                                      for x in vectorized(58):
                                                          P[y, x] = 0

Otherwise every vector of a row repeats the test.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.nodes import (
    Conditional,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_stmt, walk
from compiler.passes.cpu.accumulator_tiles import EXPANDED


def unswitch_paddings(stmt: Stmt) -> Stmt:
    """Split the nests of expanded loops that store either an element or a constant."""
    if not isinstance(stmt, For) or stmt.kind not in EXPANDED:
        return map_stmt(stmt, unswitch_paddings, lambda expr: expr)
    loops = [stmt]
    while isinstance(loops[-1].body, For) and loops[-1].body.kind in EXPANDED:
        loops.append(loops[-1].body)
    match loops[-1].body:
        case Store(value=Conditional(condition, then, FloatImm() | IntImm() as constant)) as store:
            names = {loop.var for loop in loops}
            outside, inside = _parts(condition, names)
        case _:
            return stmt
    if outside is None:
        return stmt
    value = then if inside is None else Conditional(inside, then, constant)
    return If(
        outside,
        _nest(loops, replace(store, value=value)),
        _nest(loops, replace(store, value=constant)),
    )


def _parts(condition: Expr, names: set[Var]) -> tuple[Expr | None, Expr | None]:
    """Return the conjunction of the loop-invariant conditions, and that of the others."""
    if isinstance(condition, Logic) and condition.op == "and":
        a, b = _parts(condition.lhs, names), _parts(condition.rhs, names)
        return _both(a[0], b[0]), _both(a[1], b[1])
    varies = any(isinstance(node, Load) or node in names for node in walk(condition))
    return (None, condition) if varies else (condition, None)


def _both(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return Logic("and", a, b)


def _nest(loops: list[For], body: Stmt) -> Stmt:
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body
