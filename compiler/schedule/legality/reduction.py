"""Check that loops run a whole reduction correctly: each point once, the start first."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.guards import conjuncts
from compiler.ir.arith.iter_map import IterSplit, split_of, variables, variables_of
from compiler.ir.arith.simplify import prove
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Expr, IntImm, Var
from compiler.ir.core.visit import substitute
from compiler.schedule.legality.block_kind import extents_of_iterators
from compiler.schedule.legality.coverage import is_whole
from compiler.schedule.legality.guard import conjunction, dense_spans
from compiler.schedule.legality.placed_block import PlacedBlock


def single_pass_problem(
    site: PlacedBlock, inner: AbstractSet[Var], unmixed: AbstractSet[Var]
) -> str | None:
    """Return why some loops do not run each point of a reduction once, its start first.

    If they do, the first iteration is that of the init, whatever the order of the loops.

    Args:
        inner: The loops; the others are fixed.
        unmixed: Those that may not bind both spatial and reduction iterators.
    """
    spatial: set[Var] = set()
    reduce: set[Var] = set()
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        (spatial if iter_var.kind == "spatial" else reduce).update(variables_of(value))
        if iter_var.kind != "spatial" and (value.const or any(c < 0 for _, c in value.terms)):
            reason = f"the reduction of block {site.name} over {iter_var.var.name}"
            return f"{reason} does not start at its first iteration"
    mixed = sorted(var.name for var in unmixed & spatial & reduce)
    if mixed:
        return f"loop {mixed[0]} binds both spatial and reduction iterators of block {site.name}"
    if not inner <= determined(site.values, site.extents, set(site.extents) - inner):
        return f"the loops do not determine the points of block {site.name}"
    return None


def is_whole_reduction(site: PlacedBlock) -> bool:
    """Return whether every element of a block is reduced over all points, each once."""
    bound = {
        var
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True)
        if iter_var.kind != "spatial"
        for var in variables_of(value)
    }
    depth = next((n for n, loop in enumerate(site.loops) if loop.var in bound), len(site.loops))
    inner = {loop.var for loop in site.loops[depth:]}
    spans = dense_spans(site, set(site.extents) - bound)
    return (
        spans is not None
        and single_pass_problem(site, inner, inner) is None
        and all(
            iter_var.kind == "spatial" or is_whole(span, iter_var)
            for iter_var, span in zip(site.block.iter_vars, spans, strict=True)
        )
    )


def masked_points(site: PlacedBlock) -> tuple[Expr, ...] | None:
    """Return the conditions, on iterators, that exclude points of a whole reduction.

    The factoring of a sum of 100 terms by 16 leaves such a condition: of the partial sums over
    `k_0` below 7, those of `k_1` from 4 on have 6 terms, `k_0 * 16 + k_1 < 100`. The first term of
    each element must not be excluded, since it starts the reduction.

    Returns:
        No conditions if all points are run; None if not every element is proved to be reduced over
        all other points, once.
    """
    if is_whole_reduction(site):
        return ()
    iterator_of: dict[Var, Expr] = {
        value: iter_var.var
        for iter_var, value in zip(site.block.iter_vars, site.realize.iter_values, strict=True)
        if isinstance(value, Var)
    }
    conditions = conjuncts(site.realize.predicate)
    masks = [c for c in conditions if variables(c) <= iterator_of.keys()]
    others = tuple(c for c in conditions if c not in masks)
    whole = replace(site.realize, predicate=conjunction(others))
    if not masks or not is_whole_reduction(PlacedBlock((*site.path[:-1], whole))):
        return None
    start: dict[Var, Expr] = {
        i.var: IntImm(0, dtype_of(i.var)) for i in site.block.iter_vars if i.kind != "spatial"
    }
    extents = extents_of_iterators(site.block)
    on_iterators = tuple(substitute(mask, iterator_of) for mask in masks)
    starts = all(prove(substitute(mask, start), extents) for mask in on_iterators)
    return on_iterators if starts else None


def unmixed_loops(site: PlacedBlock) -> set[Var]:
    """Return the loops whose iterators take splits that no other loop contributes to.

    A loop of both spatial and reduction splits then runs the reduction of each element from its
    start on, in any nest of loops. The start is the first iteration of the element, if the splits
    do not overlap. The predicate must not exclude any of these iterations.
    """
    mixed: set[Var] = set()
    splits_by_var: dict[Var, list[tuple[bool, IterSplit]]] = {}
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        for atom, _ in value.terms:
            split = split_of(atom, site.extents)
            if split is None or not isinstance(split.source, Var):
                mixed |= variables(atom)
                continue
            is_spatial = iter_var.kind == "spatial"
            splits_by_var.setdefault(split.source, []).append((is_spatial, split))
    for var, splits in splits_by_var.items():
        spatial = [split for is_spatial, split in splits if is_spatial]
        if any(_overlap(s, r) for is_spatial, r in splits if not is_spatial for s in spatial):
            mixed.add(var)
    return {loop.var for loop in site.loops} - mixed - variables(site.realize.predicate)


def _overlap(a: IterSplit, b: IterSplit) -> bool:
    """Return whether two splits of one number depend on each other."""
    return a.low < b.low * b.extent and b.low < a.low * a.extent


def starts_anew(site: PlacedBlock) -> bool:
    """Return whether a block is a reduction that initialises every element before adding to it.

    If one loop binds a spatial and a reduction iterator, as in `C[i] += A[i, i]`, the reduction
    begins for one element only. If an iterator is bound outside of the scope, a run of the scope
    continues a reduction that an earlier run began.
    """
    spatial: set[Var] = set()
    reduce: set[Var] = set()
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        (spatial if iter_var.kind == "spatial" else reduce).update(variables_of(value))
        if iter_var.kind != "spatial" and (value.const or any(c < 0 for _, c in value.terms)):
            return False
    inside = {loop.var for loop in site.loops}
    return site.kind == "reduction" and reduce <= inside and spatial & reduce <= unmixed_loops(site)
