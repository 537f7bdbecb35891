"""Fuse the addition after a sum into the sum: `fuse_reduction_epilogue`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.ir.analysis.reducer import ReductionForm, reduction_of
from compiler.ir.arith.simplify import equal
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Expr,
    Load,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_region, substitute, walk
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.coverage import is_finished_for, runs_whole_domain, share_loops
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import is_whole_reduction
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.tree.tree import block_path, realize_at, replace_at, with_block


def fuse_reduction_epilogue(func: PrimFunc, reduction: str, epilogue: str) -> PrimFunc:
    """Start a sum from the term that a later block adds to it, and write to that block's buffer.

    (TensorIR also fuses functions such as relu and clip, by applying them at each step. That
    changes the result, so it is refused here.)

    Args:
        reduction: The block that sums.
        epilogue: The block that adds a term to the result.

    Requires:
        The reduction is a sum from zero, of every element over all points, into one buffer that
        is not an output and that only the epilogue reads. The epilogue is complete, in the same
        scope and after it, and runs for all its points. It stores, at the same index and in the
        same type, the result plus a term that neither of the two writes; its iterators are those of
        the reduction. The term is finished before the reduction begins. No other block writes the
        output of the epilogue, or reads it before the epilogue has finished it.

    Rewrites:
        for i, k in ...:                      for i, k in ...:
            if k == 0: C[i] = 0                   if k == 0: D[i] = bias[i]
            C[i] += A[i, k]            ->         D[i] += A[i, k]
        for i in ...:
            D[i] = C[i] + bias[i]

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("fuse_reduction_epilogue", func)
    scope, site = scope_of_block(func, reduction, refuse)
    after = next((other for other in scope.sites if other.name == epilogue), None)
    if after is None:
        at = block_path(func, epilogue, refuse)[-1]
        raise refuse(f"block {epilogue} is not in the scope of block {reduction}", at, "structure")
    reduction_form = _sum_of(scope, site)
    added = _added(site, after, reduction_form, refuse)
    _require_order(scope, site, after, added)

    block = site.block
    target = added.target
    body = Store(
        target.buffer,
        target.indices,
        BinOp("+", Load(target.buffer, target.indices), reduction_form.values[0]),
    )
    epilogue_reads = after.block.reads
    result = reduction_form.targets[0].buffer
    mapping = added.iterators
    added_reads = [
        map_region(r, lambda e: substitute(e, mapping))
        for r in epilogue_reads
        if r.buffer != result
    ]
    added_buffers = {region.buffer for region in added_reads}
    fused = replace(
        block,
        init=Store(target.buffer, target.indices, added.value),
        body=body,
        reads=(
            *added_reads,
            *(region for region in block.reads if region.buffer not in added_buffers),
        ),
        writes=tuple(map_region(r, lambda e: substitute(e, mapping)) for r in after.block.writes),
    )
    func = replace_at(func, scope.whole_path(after), None)
    path = block_path(func, reduction, refuse)
    return replace_at(func, path, with_block(realize_at(path), fused))


@dataclass(frozen=True)
class _Added:
    """The term that an epilogue adds and the target of its store, by the reduction's iterators."""

    target: Load
    value: Expr
    iterators: dict[Var, Expr]


def _sum_of(scope: BlockScope, site: PlacedBlock) -> ReductionForm:
    """Return a block as a sum, or refuse."""
    refuse = scope.refuse
    if isinstance(site.kind, Unclassified):
        raise refuse(site.kind.reason, site.realize, "block_kind")
    if site.kind != "reduction":
        raise refuse(
            f"block {site.name} is not a reduction with an init", site.realize, "block_kind"
        )
    reduction_form = reduction_of(site.block)
    if isinstance(reduction_form, str):
        raise refuse(f"block {site.name} {reduction_form}", site.realize, "block_kind")
    result = reduction_form.reducer.results[0]
    if len(reduction_form.targets) > 1 or not (isinstance(result, BinOp) and result.op == "+"):
        raise refuse(f"block {site.name} is not a sum into one buffer", site.realize, "block_kind")
    if not is_whole_reduction(site):
        reason = f"block {site.name} is not proved to reduce each element over all points, once"
        raise refuse(reason, site.realize, "not_proved")
    scope.require_local(site)
    scope.require_only_writer(site)
    return reduction_form


def _added(
    site: PlacedBlock, after: PlacedBlock, reduction_form: ReductionForm, refuse: Refuse
) -> _Added:
    """Return the term that an epilogue adds to a sum, or refuse."""
    if isinstance(after.kind, Unclassified):
        raise refuse(after.kind.reason, after.realize, "block_kind")
    if after.kind != "complete" or not runs_whole_domain(after):
        reason = f"block {after.name} is not complete, or does not run for all its points"
        raise refuse(reason, after.realize, "block_kind")
    iterators = _iterators(site, after, refuse)
    store = after.block.body
    target = reduction_form.targets[0]
    if isinstance(store, Store) and store.buffer.dtype == target.buffer.dtype:
        epilogue_target = Load(store.buffer, tuple(substitute(i, iterators) for i in store.indices))
        value = substitute(store.value, iterators)
        sides: list[tuple[Expr, Expr]] = [(value, reduction_form.identity[0])]
        if isinstance(value, BinOp) and value.op == "+":
            sides.extend(((value.lhs, value.rhs), (value.rhs, value.lhs)))
        for reduced, addend in sides:
            if reduced == target and not _reads(addend, {target.buffer, store.buffer}):
                return _Added(epilogue_target, addend, iterators)
    reason = f"block {after.name} does not only add a term to each element of"
    raise refuse(f"{reason} {target.buffer.name}", after.realize, "block_kind")


def _iterators(site: PlacedBlock, after: PlacedBlock, refuse: Refuse) -> dict[Var, Expr]:
    """Return the reduction's spatial iterators by those of the epilogue, in their order."""
    mine = [i for i in site.block.iter_vars if i.kind == "spatial"]
    theirs = after.block.iter_vars
    same = len(mine) == len(theirs) and all(
        equal(a.extent, b.extent) for a, b in zip(mine, theirs, strict=True)
    )
    if not same:
        reason = f"block {after.name} has other iterators than the spatial ones of block"
        raise refuse(f"{reason} {site.name}", after.realize, "block_kind")
    return {b.var: a.var for a, b in zip(mine, theirs, strict=True)}


def _reads(expr: Expr, buffers: set[Buffer]) -> bool:
    return any(isinstance(node, Load) and node.buffer in buffers for node in walk(expr))


def _require_order(scope: BlockScope, site: PlacedBlock, after: PlacedBlock, added: _Added) -> None:
    """Refuse unless all accesses of the epilogue may happen when the sum begins."""
    refuse = scope.refuse
    if scope.position(after) < scope.position(site) or not is_finished_for(site, after):
        raise refuse(
            f"block {after.name} may read a sum that is not finished", after.realize, "dependence"
        )
    summed = site.facts.written_buffers()
    inputs = {node.buffer for node in walk(added.value) if isinstance(node, Load)}
    epilogue_writes = after.facts.written_buffers()
    for other in scope.sites:
        if other in (site, after):
            continue
        if other.facts.read_buffers() & summed:
            raise refuse(
                f"block {other.name} reads what block {site.name} sums up",
                other.realize,
                "dependence",
            )
        is_before = scope.position(other) < scope.position(site) and not share_loops(other, site)
        if other.facts.written_buffers() & inputs and not is_before:
            reason = f"block {other.name} writes what block {after.name} adds, not before block"
            raise refuse(f"{reason} {site.name}", other.realize, "dependence")
        if other.facts.written_buffers() & epilogue_writes:
            reason = f"block {other.name} writes what block {after.name} writes"
            raise refuse(reason, other.realize, "dependence")
        is_later = scope.position(other) > scope.position(after)
        if other.facts.read_buffers() & epilogue_writes and not (
            is_later and is_finished_for(after, other)
        ):
            reason = f"block {other.name} may read what block {after.name} has not written yet"
            raise refuse(reason, other.realize, "dependence")
    if site.facts.read_buffers() & epilogue_writes:
        raise refuse(
            f"block {site.name} reads what block {after.name} writes", site.realize, "dependence"
        )
