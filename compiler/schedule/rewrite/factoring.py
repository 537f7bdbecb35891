"""The two nests of a factored reduction: the partial results, and their combination."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from compiler.ir.analysis.reducer import ReductionForm
from compiler.ir.arith.guards import conjuncts
from compiler.ir.arith.iter_map import variables
from compiler.ir.arith.simplify import prove
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    For,
    IntImm,
    IterVar,
    Let,
    Load,
    Range,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_region, substitute, walk
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.tree.tree import fresh_buffer_name

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Factoring:
    """A reduction and the loop that it is factored by."""

    scope: BlockScope
    site: PlacedBlock
    target: For
    reduction: ReductionForm

    @cached_property
    def reduce_loops(self) -> set[Var]:
        """Return the loops that bind reduction iterators."""
        pairs = zip(self.site.block.iter_vars, self.site.realize.iter_values, strict=True)
        return {var for i, value in pairs if i.kind != "spatial" for var in variables(value)}

    @cached_property
    def inner_loops(self) -> tuple[For, ...]:
        """Return the loops from the outermost one that binds reduction iterators on."""
        loops = self.site.loops
        depth = next(n for n, loop in enumerate(loops) if loop.var in self.reduce_loops)
        return loops[depth:]

    @cached_property
    def predicates(self) -> tuple[Expr, Expr]:
        """Return the predicate of the partial results, and the part for their combination.

        Raises:
            ScheduleError: If it may leave out the start of a partial result.
        """
        predicate = self.site.realize.predicate
        start: dict[Var, Expr] = {
            var: IntImm(0, dtype_of(var)) for var in self.reduce_loops - {self.target.var}
        }
        remaining: list[Expr] = []
        for condition in conjuncts(predicate):
            if not variables(condition) & self.reduce_loops:
                remaining.append(condition)
            elif not prove(substitute(condition, start), self.site.extents):
                reason = f"the predicate of block {self.site.name} may leave out the start of a"
                raise self.scope.refuse(f"{reason} partial result", self.site.realize, "not_proved")
        return predicate, conjunction(tuple(remaining))

    def axis(self, factor_axis: int) -> int:
        """Return the position of the new dimension, counted from the front."""
        ndim = len(self.reduction.targets[0].indices)
        if not -ndim - 1 <= factor_axis <= ndim:
            name = self.reduction.targets[0].buffer.name
            reason = f"factor_axis {factor_axis} is not between {-ndim - 1} and {ndim}: {name} has"
            raise self.scope.refuse(
                f"{reason} {ndim} dimension(s)", self.site.realize, "invalid_argument"
            )
        return factor_axis % (ndim + 1)


def partial_buffers(factoring: Factoring, axis: int) -> tuple[Buffer, ...]:
    """Return the buffers of the partial results."""
    func = factoring.scope.func
    buffers: list[Buffer] = []
    for target in factoring.reduction.targets:
        old = target.buffer
        name = fresh_buffer_name(func, f"{old.name}_rf")
        shape = _with(old.shape, axis, factoring.target.extent)
        buffers.append(Buffer(Var(name, "handle"), shape, old.dtype, old.scope))
    return tuple(buffers)


def partial_nest(factoring: Factoring, axis: int, buffers: tuple[Buffer, ...], name: str) -> Stmt:
    """Return the loops and the block that compute the partial results, with new variables."""
    site, target, reduction = factoring.site, factoring.target, factoring.reduction
    extra = IterVar(_iterator_of(target.var), target.extent, "spatial")
    iter_vars, values, renamed = _partial_iterators(factoring, extra)

    def new(expr: Expr) -> Expr:
        return substitute(expr, renamed)

    indices = _with(tuple(map(new, reduction.targets[0].indices)), axis, extra.var)
    block = _combining_block(
        replace(site.block, name=name, iter_vars=iter_vars),
        tuple(Load(buffer, indices) for buffer in buffers),
        tuple(map(new, reduction.values)),
        reduction,
    )
    partial_of = dict(zip((t.buffer for t in reduction.targets), buffers, strict=True))
    point = Range(extra.var, IntImm(1, dtype_of(extra.var)))
    block = replace(
        block,
        reads=tuple(map_region(r, new) for r in site.block.reads if r.buffer not in partial_of),
        writes=tuple(
            BufferRegion(partial_of[w.buffer], _with(map_region(w, new).region, axis, point))
            for w in site.block.writes
        ),
    )
    loops: dict[Var, Expr] = {v: Var(v.name, v.dtype) for v in (lp.var for lp in site.loops)}
    nest: Stmt = BlockRealize(
        tuple(substitute(value, loops) for value in values),
        substitute(factoring.predicates[0], loops),
        block,
    )
    for loop in reversed(site.loops):
        var = loops[loop.var]
        assert isinstance(var, Var), "loops are renamed to loops"
        nest = replace(loop, var=var, extent=substitute(loop.extent, loops), body=nest)
    return nest


def _partial_iterators(
    factoring: Factoring, extra: IterVar
) -> tuple[tuple[IterVar, ...], tuple[Expr, ...], dict[Var, Expr]]:
    """Return the iterators of the partial results, their values, and the values of the old ones.

    A reduction iterator that depends on the factored loop is replaced by one for each of its loops.
    """
    site, target = factoring.site, factoring.target
    iter_vars: list[IterVar] = [extra]
    values: list[Expr] = [target.var]
    of_loop: dict[Var, Expr] = {target.var: extra.var}
    extents = {loop.var: loop.extent for loop in site.loops}
    renamed: dict[Var, Expr] = {}
    for old, value in zip(site.block.iter_vars, site.realize.iter_values, strict=True):
        if target.var not in variables(value):
            var = Var(old.var.name, old.var.dtype)
            iter_vars.append(IterVar(var, old.extent, old.kind))
            values.append(value)
            renamed[old.var] = var
            continue
        for loop in (node for node in walk(value) if isinstance(node, Var)):
            if loop in extents and loop not in of_loop:
                var = _iterator_of(loop)
                of_loop[loop] = var
                iter_vars.append(IterVar(var, extents[loop], "reduce"))
                values.append(loop)
        renamed[old.var] = substitute(value, of_loop)
    return tuple(iter_vars), tuple(values), renamed


def last_nest(factoring: Factoring, axis: int, buffers: tuple[Buffer, ...]) -> Stmt:
    """Return the loops and the block that reduce the partial results."""
    site, target, reduction = factoring.site, factoring.target, factoring.reduction
    extra = IterVar(_iterator_of(target.var), target.extent, "reduce")
    spatial = [
        (i, v)
        for i, v in zip(site.block.iter_vars, site.realize.iter_values, strict=True)
        if i.kind == "spatial"
    ]
    indices = _with(reduction.targets[0].indices, axis, extra.var)
    block = _combining_block(
        replace(site.block, iter_vars=(extra, *(i for i, _ in spatial))),
        reduction.targets,
        tuple(Load(buffer, indices) for buffer in buffers),
        reduction,
    )
    block = replace(
        block,
        reads=tuple(_point(buffer, indices) for buffer in buffers),
        writes=tuple(_point(target.buffer, target.indices) for target in reduction.targets),
    )
    nest: Stmt = BlockRealize(
        (target.var, *(value for _, value in spatial)), factoring.predicates[1], block
    )
    for loop in reversed(factoring.inner_loops):
        if loop is target or loop.var not in factoring.reduce_loops:
            nest = replace(loop, body=nest)
    return nest


def _combining_block(
    like: Block, targets: tuple[Load, ...], values: tuple[Expr, ...], reduction: ReductionForm
) -> Block:
    """Return a block that combines values into its targets, or stores them if it reduces none."""
    if not any(iter_var.kind == "reduce" for iter_var in like.iter_vars):
        stores = tuple(Store(t.buffer, t.indices, v) for t, v in zip(targets, values, strict=True))
        return replace(like, init=None, body=seq(*stores))
    starts = zip(targets, reduction.identity, strict=True)
    init = seq(*(Store(t.buffer, t.indices, start) for t, start in starts))
    results = reduction.reducer(targets, values)
    if len(targets) == 1:
        return replace(
            like, init=init, body=Store(targets[0].buffer, targets[0].indices, results[0])
        )
    # Compute all values before the first store, because they read the stored elements.
    names = [Var(f"v_{target.buffer.name}", target.buffer.dtype) for target in targets]
    pairs = zip(targets, names, strict=True)
    body = seq(*(Store(target.buffer, target.indices, name) for target, name in pairs))
    for var, result in reversed(list(zip(names, results, strict=True))):
        body = Let(var, result, body)
    return replace(like, init=init, body=body)


def _iterator_of(loop: Var) -> Var:
    return Var(f"v{loop.name}", loop.dtype)


def _point(buffer: Buffer, indices: tuple[Expr, ...]) -> BufferRegion:
    return BufferRegion(buffer, tuple(Range(i, IntImm(1, dtype_of(i))) for i in indices))


def _with(items: tuple[_Item, ...], position: int, item: _Item) -> tuple[_Item, ...]:
    return (*items[:position], item, *items[position:])
