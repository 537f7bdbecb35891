"""Loops around the parts of a softmax that one iteration of a loop over its rows' blocks takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compiler.ir.analysis.regions import with_regions
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Compare,
    Expr,
    For,
    IntImm,
    IterKind,
    IterVar,
    Stmt,
    Var,
)
from compiler.ir.core.visit import transform
from compiler.schedule.index.region import Span
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.rewrite.placement import clip, make_nest
from compiler.schedule.tree.tree import extents_of


@dataclass(frozen=True)
class RowBlocks:
    """What one iteration of a loop takes of a softmax: a block of some rows.

    Attributes:
        loop: The loop.
        around: The loops around the weighted sum.
        rows: The rows.
        along: The elements of each row.
        axis: The dimension along a row.
        size: The number of elements of a row.
    """

    loop: For
    around: tuple[For, ...]
    rows: tuple[Span, ...]
    along: Span
    axis: int
    size: Expr

    def step(self, kind: IterKind) -> IterVar:
        """Return an iterator over the iterations."""
        return IterVar(Var(f"v{self.loop.var.name}", self.loop.var.dtype), self.loop.extent, kind)

    def of_elements(self, block: Block, indices: Sequence[Expr]) -> Stmt:
        """Return loops around a block that stores elements of rows at some iterators."""
        box = (*self.rows[: self.axis], self.along, *self.rows[self.axis :])
        spans_of = dict(zip(indices, box, strict=True))
        return self._nest(block, [clip(i, spans_of.get(i.var)) for i in block.iter_vars])

    def of_rows(self, block: Block) -> Stmt:
        """Return loops around a block over rows, and over the iterations if it has one more."""
        num_steps = len(block.iter_vars) - len(self.rows)
        return self._nest(block, [*self.rows, *[self._point] * num_steps])

    def of_tiles(self, block: Block) -> Stmt:
        """Return loops around a block over rows, the iterations, and the elements of one."""
        inner = block.iter_vars[-1]
        nest = self._nest(block, [*self.rows, self._point, clip(inner, None)])
        count = extent_or_unknown(self.loop.extent)
        if count * self.along.extent == extent_or_unknown(self.size):
            return nest

        def with_guard(stmt: Stmt) -> Stmt | None:
            if not isinstance(stmt, BlockRealize):
                return None
            element = BinOp("+", self._start(stmt.iter_values[-2]), stmt.iter_values[-1])
            guards = [stmt.predicate, Compare("<", element, self.size)]
            return replace(stmt, predicate=conjunction(tuple(g for g in guards if g != TRUE)))

        return transform(nest, on_stmt=with_guard)

    def element(self, step: Var, inner: Var) -> Expr:
        """Return the position in a row of an element of one iteration's block."""
        return BinOp("+", self._start(step), inner)

    def _start(self, step: Expr) -> Expr:
        return BinOp("*", step, IntImm(self.along.extent, dtype_of(step)))

    @property
    def _point(self) -> Span:
        return Span(Affine(((self.loop.var, 1),), 0, dtype_of(self.loop.var)), 1)

    def _nest(self, block: Block, spans: Sequence[Span]) -> Stmt:
        return make_nest(with_regions(block), spans, extents_of(self.around), self.around)
