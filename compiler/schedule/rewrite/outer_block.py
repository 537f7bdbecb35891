"""Make an outer block of the loops around a block: divide iterators, reads and init."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.ir.analysis.regions import relaxed
from compiler.ir.arith.iter_map import Extents, variables
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    BufferRegion,
    Compare,
    Expr,
    IntImm,
    IterVar,
    Range,
    Stmt,
    Var,
)
from compiler.ir.core.visit import map_stmt, substitute, transform_expr
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.subspace import Division, IteratorPart


@dataclass(frozen=True)
class Blockized:
    """The result for a block inside an outer block: the outer iterators, and the inner block."""

    outer_iters: tuple[IterVar, ...]
    division: Division
    inner: BlockRealize  # the init is still included
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]


def blockized(
    site: PlacedBlock,
    division: Division,
    *,
    keep_unit_iters: bool,
    outer_iters: Sequence[IterVar] | None = None,
) -> Blockized:
    """Return a block in terms of outer iterators and the remaining inner ones.

    Args:
        keep_unit_iters: Whether the block uses outer iterators with a single value.
        outer_iters: The outer iterators, if they exist already.
    """
    old = site.block
    pairs = list(zip(old.iter_vars, division.outer, division.inner, strict=True))
    if outer_iters is None:
        outer_iters = [_iterator(i, part, "_o") for i, part, _ in pairs]
    values: dict[Var, Expr] = {}
    inner_iters: list[IterVar] = []
    inner_values: list[Expr] = []
    for outer_iter, (iter_var, outer, inner) in zip(outer_iters, pairs, strict=True):
        if inner.is_unit:
            zero = IntImm(0, dtype_of(iter_var.var))
            is_dropped = outer.is_unit and not keep_unit_iters
            values[iter_var.var] = zero if is_dropped else outer_iter.var
            continue
        inner_iter = _iterator(iter_var, inner, "_i")
        inner_iters.append(inner_iter)
        inner_values.append(inner.value)
        index = BinOp("+", BinOp("*", outer_iter.var, inner.extent), inner_iter.var)
        values[iter_var.var] = inner_iter.var if outer.is_unit else index
    block = _in_terms_of(old, values, site.extents)
    spans = {i.var: i.extent for i in inner_iters}
    return Blockized(
        tuple(outer_iters),
        division,
        BlockRealize(
            tuple(inner_values),
            division.inner_predicate,
            replace(block, iter_vars=tuple(inner_iters)),
        ),
        tuple(_covered(region, spans) for region in block.reads),
        tuple(_covered(region, spans) for region in block.writes),
    )


def _iterator(like: IterVar, part: IteratorPart, suffix: str) -> IterVar:
    return IterVar(Var(f"{like.var.name}{suffix}", like.var.dtype), part.extent, like.kind)


def _in_terms_of(block: Block, values: Mapping[Var, Expr], extents: Extents) -> Block:
    """Return a block with its iterators replaced at all uses."""

    def on_expr(expr: Expr) -> Expr:
        new = substitute(expr, values)
        return expr if new is expr else simplify(transform_expr(new, _turned), extents)

    def on_stmt(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, on_stmt, on_expr)

    realize = on_stmt(BlockRealize((), TRUE, block))
    assert isinstance(realize, BlockRealize), "a rebuild keeps the kind of a statement"
    return realize.block


def _turned(expr: Expr) -> Expr | None:
    """Return a comparison with the smaller side first, as TVM's simplifier writes it."""
    if isinstance(expr, Compare) and expr.op in (">", ">="):
        return Compare("<" if expr.op == ">" else "<=", expr.rhs, expr.lhs)
    return None


def _covered(region: BufferRegion, spans: Mapping[Var, Expr]) -> BufferRegion:
    """Return the union of a region over all values of some iterators."""
    literal_extents = {
        var: extent.value for var, extent in spans.items() if isinstance(extent, IntImm)
    }
    ranges: list[Range] = []
    for r, size in zip(region.region, region.buffer.shape, strict=True):
        symbolic = variables(r.minimum) & (spans.keys() - literal_extents.keys())
        if r.minimum in symbolic and r.extent == IntImm(1, dtype_of(r.extent)):
            assert isinstance(r.minimum, Var), "it is one of the variables"
            ranges.append(Range(IntImm(0, dtype_of(size)), spans[r.minimum]))
        else:
            ranges.append(Range(IntImm(0, dtype_of(size)), size) if symbolic else r)
    return relaxed(BufferRegion(region.buffer, tuple(ranges)), literal_extents)
