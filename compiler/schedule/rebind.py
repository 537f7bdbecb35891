"""Give loops new values below a statement: the iterators of blocks, predicates, inner extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.nodes import (
    Block,
    BlockRealize,
    Expr,
    For,
    If,
    IntImm,
    Seq,
    Stmt,
    Var,
    seq,
)
from compiler.ir.simplify import simplify
from compiler.ir.visit import substitute
from compiler.schedule.access import facts_of
from compiler.schedule.digits import Extents
from compiler.schedule.guard import conjunction, conjuncts, is_implied


def rebind(
    stmt: Stmt, values: Mapping[Var, Expr], extents: Extents, guard: Expr | None = None
) -> Stmt:
    """Replace loop variables by expressions of the loops in `extents`.

    Args:
        guard: A condition that each block below gets too.
    """
    match stmt:
        case For(var, extent, body):
            known = {**extents, var: extent.value} if isinstance(extent, IntImm) else extents
            return replace(
                stmt,
                extent=substitute(extent, values),
                body=rebind(body, values, known, guard),
            )
        case Seq(stmts):
            return seq(*(rebind(s, values, extents, guard) for s in stmts))
        case If(condition, then, otherwise):
            return If(
                rebind_expr(condition, values, extents),
                rebind(then, values, extents, guard),
                None if otherwise is None else rebind(otherwise, values, extents, guard),
            )
        case BlockRealize(iter_values, predicate, block):
            return BlockRealize(
                tuple(rebind_expr(value, values, extents) for value in iter_values),
                _predicate(predicate, values, extents, guard),
                _block(block, values),
            )
        case _:
            new = substitute(stmt, values)
            return new if guard is None else If(guard, new)


def rebind_expr(expr: Expr, values: Mapping[Var, Expr], extents: Extents) -> Expr:
    """Replace variables in an expression, and simplify it where that changes it."""
    new = substitute(expr, values)
    return expr if new is expr else simplify(new, extents)


def _predicate(
    predicate: Expr, values: Mapping[Var, Expr], extents: Extents, guard: Expr | None
) -> Expr:
    new = rebind_expr(predicate, values, extents)
    if guard is None:
        return new
    known = conjuncts(new)
    # Where a later split of `i_0` finds `i_0 * 3 + i_1 < n`, the new guard says nothing new.
    return new if is_implied(guard, known, extents) else conjunction((*known, guard))


def _block(block: Block, values: Mapping[Var, Expr]) -> Block:
    if facts_of(block).outside.isdisjoint(values):
        return block
    whole = substitute(BlockRealize((), IntImm(1, "bool"), block), values)
    assert isinstance(whole, BlockRealize), "substitution keeps the kind of a statement"
    return whole.block
