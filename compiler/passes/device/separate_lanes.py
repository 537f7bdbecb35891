"""Separate the lane of a vectorized loop from quotients, remainders and comparisons around it.

    for v in vectorized(8):                        for v in vectorized(8):
        S[(t * 8 + v) // 32, (t * 8 + v) % 32] ->      S[t // 4, t % 4 * 8 + v]
        if t * 8 + v < 40:                             if t * 8 < 40:

A vector does not cross a row if its length divides that of the row and its first element stands at
a multiple of it. Then one instruction copies it. Nor does it cross a limit that is a multiple of
its length: the comparison has one result for all lanes.
"""

from __future__ import annotations

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import FixedRanges
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.nodes import BinOp, Compare, CompareOp, Expr, For, IntImm, Stmt, Var
from compiler.ir.core.visit import map_expr, map_stmt, uses

_MIRRORED: dict[CompareOp, CompareOp] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def separate_lanes(stmt: Stmt) -> Stmt:
    """Rewrite the indices in the vectorized loops of a program."""
    if isinstance(stmt, For) and stmt.kind == "vectorized" and isinstance(stmt.extent, IntImm):
        on_expr = _Separation(stmt.var, stmt.extent.value).of

        def on_stmt(inner: Stmt) -> Stmt:
            return map_stmt(inner, on_stmt, on_expr)

        stmt = on_stmt(stmt)
    return map_stmt(stmt, separate_lanes, lambda expr: expr)


class _Separation:
    """Separates one lane. Results are kept, since the guards of a load repeat its indices."""

    def __init__(self, lane: Var, extent: int) -> None:
        self._lane = lane
        self._extent = extent
        self._ranges = FixedRanges({lane: extent})
        self._results: dict[Expr, Expr] = {}

    def of(self, expr: Expr) -> Expr:
        """Return an expression whose quotients, remainders and comparisons omit the lane."""
        if not uses(expr, self._lane) or expr is self._lane:
            return expr
        result = self._results.get(expr)
        if result is None:
            result = self._results[expr] = self._separated(map_expr(expr, self.of))
        return result

    def _separated(self, new: Expr) -> Expr:
        lane, extent = self._lane, self._extent
        match new:
            case BinOp("//" | "%" as op, value, IntImm(divisor)) if divisor > 0 and uses(
                value, lane
            ):
                form = normal(value, self._ranges)
                coarse = Affine(tuple((a, c) for a, c in form.terms if a is not lane), form.const)
                parts = (coarse.const, *(c for _, c in coarse.terms))
                is_apart = form.coefficient(lane) == 1 and not any(part % extent for part in parts)
                hidden = any(uses(atom, lane) for atom, _ in coarse.terms)
                if is_apart and not hidden and divisor % extent == 0:
                    rest = simplify(BinOp(op, coarse.to_expr(), IntImm(divisor)))
                    return rest if op == "//" else BinOp("+", rest, lane)
            case Compare("<" | "<=" | ">" | ">=" as op, lhs, rhs) if uses(new, lane):
                difference = normal(lhs, self._ranges) - normal(rhs, self._ranges)
                return _compared(op, difference, lane, extent) or new
        return new


def _compared(op: CompareOp, form: Affine, lane: Var, extent: int) -> Expr | None:
    """Return a comparison with zero for the first lane, if that for all others is the same."""
    if form.coefficient(lane) == -1:
        return _compared(_MIRRORED[op], form.scaled(-1), lane, extent)
    terms = tuple((atom, factor) for atom, factor in form.terms if atom != lane)
    # Of whole numbers, x <= 0 is x - 1 < 0; the others are the opposites of these two.
    limit = form.const - (1 if op in ("<=", ">") else 0)
    is_uniform = not limit % extent and not any(factor % extent for _, factor in terms)
    is_hidden = any(uses(atom, lane) for atom, _ in terms)
    if form.coefficient(lane) != 1 or not is_uniform or is_hidden:
        return None
    return simplify(
        Compare(op, Affine(terms, 0, form.dtype).to_expr(), IntImm(-form.const, form.dtype))
    )
