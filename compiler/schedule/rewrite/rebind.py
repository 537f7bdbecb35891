"""Replace loop variables below a statement: in iterators' values, predicates, inner extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.guards import bounds_of, conjuncts
from compiler.ir.arith.iter_map import Extents
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Expr,
    For,
    If,
    Let,
    Seq,
    Stmt,
    Var,
    seq,
)
from compiler.ir.core.visit import substitute
from compiler.schedule.index.access import facts_of
from compiler.schedule.index.iter_form import in_iter_form
from compiler.schedule.legality.guard import conjunction


def rebind(
    stmt: Stmt,
    values: Mapping[Var, Expr],
    extents: Extents,
    guard: Expr | None = None,
    *,
    keep_units: bool = True,
) -> Stmt:
    """Replace loop variables by expressions of the loops in `extents`.

    Args:
        guard: A condition to add to each block below.
        keep_units: Whether loops of a single iteration appear in the values of iterators.
    """
    match stmt:
        case For(var, extent, body):
            inner_extents = {**extents, var: extent_or_unknown(extent)}
            return replace(
                stmt,
                extent=substitute(extent, values),
                body=rebind(body, values, inner_extents, guard, keep_units=keep_units),
            )
        case Seq(stmts):
            return seq(*(rebind(s, values, extents, guard, keep_units=keep_units) for s in stmts))
        case If(condition, then, otherwise):
            return If(
                substitute(condition, values),
                rebind(then, values, extents, guard, keep_units=keep_units),
                None
                if otherwise is None
                else rebind(otherwise, values, extents, guard, keep_units=keep_units),
            )
        case Let(var, value, body):
            inside = rebind(body, values, extents, guard, keep_units=keep_units)
            return Let(var, substitute(value, values), inside)
        case BlockRealize(iter_values, predicate, block):
            bound = tuple(substitute(value, values) for value in iter_values)
            conditions = conjuncts(substitute(predicate, values))
            known_bounds = bounds_of((*conditions, *(() if guard is None else (guard,))), extents)
            form = in_iter_form(bound, extents, known_bounds, keep_units=keep_units)
            return BlockRealize(
                bound if form is None else form,
                conjunction(conditions if guard is None else (*conditions, guard)),
                _block(block, values),
            )
        case _:
            new = substitute(stmt, values)
            return new if guard is None else If(guard, new)


def _block(block: Block, values: Mapping[Var, Expr]) -> Block:
    if facts_of(block).outside.isdisjoint(values):
        return block
    realize = substitute(BlockRealize((), TRUE, block), values)
    assert isinstance(realize, BlockRealize), "substitution keeps the kind of a statement"
    return realize.block
