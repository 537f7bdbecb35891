"""Split a reduction into initialisation and update: `decompose_reduction`."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.arith.iter_map import variables_of
from compiler.ir.core.nodes import (
    Buffer,
    For,
    If,
    Let,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import single_pass_problem, unmixed_loops
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.rewrite.init_nest import init_nest, reads_without_init
from compiler.schedule.tree.tree import fresh_block_name, loop_at, loop_path, replace_at, with_block


def decompose_reduction(func: PrimFunc, block: str, loop: Var) -> tuple[PrimFunc, str, str]:
    """Split a reduction into a block that initialises, before a loop, and one that updates.

    Requires:
        The block is a reduction. The loop is around it, in its scope; no loop outside it binds
        reduction iterators. The loops from it inwards identify the block's points. A loop that
        binds both spatial and reduction iterators is in no predicate, and shares no split with
        others. The reduction runs from its first point on, whatever the predicate. The inputs of
        the init are not written under the loop. Under the loop, other blocks access only finished
        results of the block.

    Rewrites:
        for i, k, j in ...:             for i in ...:
            if k == 0:                      for j_init in ...:
                C[i, j] = 0       ->            C[i, j_init] = 0
            C[i, j] += A[i, k]              for k, j in ...:
                                                C[i, j] += A[i, k]

    Returns:
        The program, and the names of the two blocks: `C_init` and `C_update`.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    return separate_init(func, block, loop, refusal("decompose_reduction", func))


def separate_init(
    func: PrimFunc, block: str, loop: Var, refuse: Refuse
) -> tuple[PrimFunc, str, str]:
    """Do what `decompose_reduction` does, as a step of any primitive."""
    scope, site = scope_of_block(func, block, refuse)
    kind = site.kind
    if isinstance(kind, Unclassified):
        raise refuse(kind.reason, site.realize, "block_kind")
    if kind != "reduction":
        raise refuse(f"block {block} is not a reduction with an init", site.realize, "block_kind")
    path = loop_path(func, loop, refuse)
    target = loop_at(path)
    if not site.is_under(target):
        raise refuse(f"loop {loop.name} is not around block {block}", target, "structure")
    inner = (target, *site.loops_inside(target))
    _require_separable(scope, site, inner)

    init_name = fresh_block_name(func, f"{block}_init")
    init = init_nest(
        site.realize,
        inner,
        init_name,
        site.extents,
        refuse,
        loop_suffix="_init",
        annotations=site.block.annotations,
    )
    update_name = fresh_block_name(func, f"{block}_update")
    update = replace(site.block, name=update_name, init=None, reads=reads_without_init(site.block))
    func = replace_at(func, scope.whole_path(site), with_block(site.realize, update))
    path = loop_path(func, loop, refuse)
    return replace_at(func, path, seq(init, path[-1])), init_name, update_name


def _require_separable(scope: BlockScope, site: PlacedBlock, inner: tuple[For, ...]) -> None:
    """Refuse unless the loops `inner` contain the whole reduction of each element, once."""
    refuse = scope.refuse
    moving = {loop.var for loop in inner}
    for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
        outside = [loop for loop in site.loops if loop.var in variables_of(value) - moving]
        if iter_var.kind != "spatial" and outside:
            name = outside[0].var.name
            where = f"loop {name}, outside loop {inner[0].var.name}, binds a reduction iterator of"
            raise refuse(f"{where} block {site.name}", outside[0], "structure")
        beyond = variables_of(value) - moving - {loop.var for loop in site.loops}
        if iter_var.kind != "spatial" and beyond:
            name = min(var.name for var in beyond)
            where = f"{name}, from outside the block around, moves a reduction iterator of"
            raise refuse(f"{where} block {site.name}", site.realize, "structure")
    reason = single_pass_problem(site, moving, moving - unmixed_loops(site))
    if reason is not None:
        raise refuse(reason, site.realize, "not_proved")
    for stmt in site.path:
        if isinstance(stmt, If | Let):
            raise refuse(
                f"block {site.name} is under a condition or a named value", stmt, "structure"
            )
    _require_settled_init(scope, site, inner[0])


def _require_settled_init(scope: BlockScope, site: PlacedBlock, target: For) -> None:
    """Refuse if an init before the loop would read or overwrite other values than inside it."""
    init_reads = {access.buffer for access in site.facts.init_reads}
    for other in scope.sites:
        if other is site or not other.is_under(target):
            continue
        for buffer in other.facts.written_buffers() & init_reads:
            reason = f"block {other.name} writes {buffer.name} under loop {target.var.name}, which"
            raise scope.refuse(
                f"{reason} the init of block {site.name} reads", other.realize, "dependence"
            )
        for buffer in site.facts.written_buffers():
            if other.touches(buffer) and not _comes_after(scope, site, other, buffer):
                reason = f"block {other.name} may touch {buffer.name} under loop {target.var.name}"
                raise scope.refuse(
                    f"{reason} before block {site.name} has computed it",
                    other.realize,
                    "dependence",
                )


def _comes_after(scope: BlockScope, site: PlacedBlock, other: PlacedBlock, buffer: Buffer) -> bool:
    """Return whether a block only reads what a reduction has finished just before."""
    is_later = scope.position(other) > scope.position(site)
    return is_later and not other.writes(buffer) and covers_reads(site, other, buffer)
