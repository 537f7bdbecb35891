"""Turn a loop, or several neighbouring blocks, into one block: `blockize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from compiler.ir.analysis.regions import read_outside_blocks, relaxed, union
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    BufferRegion,
    For,
    IntImm,
    Seq,
    Stmt,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import single_pass_problem
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.legality.subspace import Division, divide
from compiler.schedule.rewrite.cache import body_of, common_path
from compiler.schedule.rewrite.init_nest import init_nest
from compiler.schedule.rewrite.outer_block import Blockized, blockized
from compiler.schedule.tree.tree import (
    child_blocks,
    fresh_block_name,
    loop_at,
    loop_path,
    replace_at,
)


def blockize(
    func: PrimFunc,
    loop: Var,
    *,
    preserve_unit_iters: bool = True,
    refuse: Refuse | None = None,
) -> tuple[PrimFunc, str]:
    """Turn a loop and everything inside it into a block, around the one block in it.

    Args:
        preserve_unit_iters: Whether iterators still name loops of one iteration.
        refuse: Makes the errors, if another primitive calls.

    Requires:
        The loop holds one block, with only loops in between. Each iterator is a multiple of an
        expression of outer loops plus an expression of inner loops; or it uses only one side, and
        there is no predicate. Each condition is on one side. If the block has an init, it is a
        reduction whose inner loops run each point once, from its start on.

    Rewrites:
        for i_0, i_1 in T.grid(n, f):       for i_0 in range(n):
            with block(C):                      with block(C_o):
                v = i_0 * f + i_1       ->          v_o = i_0
                C[v] = ...                          for i_1 in range(f):
                                                        with block(C):
                                                            v_i = i_1
                                                            C[v_o * f + v_i] = ...

    Returns:
        The program, and the name of the outer block, `C_o`. The inner one keeps its name.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refuse or refusal("blockize", func)
    path = loop_path(func, loop, refuse)
    target = loop_at(path)
    below = list(child_blocks(target))
    if len(below) != 1:
        names = ", ".join(realize.block.name for realize in below) or "none"
        raise refuse(f"loop {loop.name} must hold one block: it holds {names}", target, "structure")
    scope, site = scope_of_block(func, below[0].block.name, refuse)
    loops = (target, *site.loops_inside(target))
    division = _divided(site, target, loops, refuse, preserve_unit_iters)
    parts = blockized(site, division, keep_unit_iters=preserve_unit_iters)
    name = fresh_block_name(func, f"{site.name}_o")
    return replace_at(func, path, _outer(scope, site, parts, loops, name)), name


def _divided(
    site: PlacedBlock, top: Stmt, loops: Sequence[For], refuse: Refuse, keep_unit_loops: bool
) -> Division:
    """Divide a block's iterators by the loops from a statement inwards, or refuse."""
    depth = next(n for n, stmt in enumerate(site.path) if stmt is top)
    for stmt in site.path[depth:-1]:
        if not isinstance(stmt, For):
            reason = f"something other than loops is between block {site.name} and the outer block"
            raise refuse(reason, stmt, "structure")
    division = divide(site, {loop.var for loop in loops}, keep_unit_loops=keep_unit_loops)
    if division is None:
        names = ", ".join(loop.var.name for loop in loops) or "none"
        reason = f"the iterators, or the predicate, of block {site.name} can't be divided between"
        raise refuse(
            f"{reason} the inner loops, {names}, and the outer ones", site.realize, "structure"
        )
    return division


def _outer(
    scope: BlockScope, site: PlacedBlock, parts: Blockized, loops: Sequence[For], name: str
) -> Stmt:
    """Return the outer block around a block and its inner loops; the init moves to it."""
    realize = parts.inner
    old = site.block
    init: Stmt | None = None
    if old.init is not None:
        _require_start(site, loops, scope.refuse)
        init_name = fresh_block_name(scope.func, f"{site.name}_init")
        init = init_nest(
            realize,
            loops,
            init_name,
            site.extents,
            scope.refuse,
            iter_suffix="_init",
            only_used=True,
        )
        inner = realize.block
        reads = (*inner.writes, *inner.reads) if _reduces(old) else inner.reads
        realize = replace(realize, block=replace(inner, init=None, reads=reads))
    nest = _nest(realize, loops)
    reads = _reads(parts, loops, nest)
    block = Block(name, parts.outer_iters, reads, _relaxed(parts.writes, loops), nest, init)
    values = tuple(part.value for part in parts.division.outer)
    return BlockRealize(values, parts.division.outer_predicate, block)


def _relaxed(regions: Sequence[BufferRegion], loops: Sequence[For]) -> tuple[BufferRegion, ...]:
    """Return the union of regions over all iterations of some loops.

    A block that uses outer loop variables, such as those of loop_partition, may still use them.
    """
    literal_extents = {
        loop.var: loop.extent.value for loop in loops if isinstance(loop.extent, IntImm)
    }
    symbolic = {loop.var for loop in loops} - literal_extents.keys()
    return tuple(relaxed(region, literal_extents, symbolic) for region in regions)


def _reads(parts: Blockized, loops: Sequence[For], nest: Stmt) -> tuple[BufferRegion, ...]:
    """Return the reads of an outer block: of its inner block, its loops and their conditions."""
    reads = list(_relaxed(parts.reads, loops))
    for region in read_outside_blocks(nest):
        position = next((n for n, r in enumerate(reads) if r.buffer == region.buffer), None)
        if position is None:
            reads.append(region)
        else:
            reads[position] = union(reads[position], region)
    return tuple(reads)


def _reduces(block: Block) -> bool:
    return any(iter_var.kind == "reduce" for iter_var in block.iter_vars)


def _require_start(site: PlacedBlock, loops: Sequence[For], refuse: Refuse) -> None:
    """Refuse unless a reduction under some loops may initialise all of its elements first."""
    if isinstance(site.kind, Unclassified):
        raise refuse(site.kind.reason, site.realize, "block_kind")
    assert site.kind == "reduction", "the block has an init"
    reason = single_pass_problem(site, {loop.var for loop in loops}, set())
    if reason is not None:
        raise refuse(reason, site.realize, "not_proved")


def _nest(body: Stmt, loops: Sequence[For]) -> Stmt:
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body


def blockize_blocks(
    func: PrimFunc, names: Sequence[str], *, preserve_unit_iters: bool = True
) -> tuple[PrimFunc, str]:
    """Turn several neighbouring blocks, with the loops that they do not share, into one block.

    Args:
        names: The blocks, in program order.
        preserve_unit_iters: Whether iterators still name loops of one iteration.

    Requires:
        There are at least two blocks, each in another of some consecutive statements below their
        shared loops, and alone in it except for loops. Their iterators and predicates divide as for
        `blockize`, with the same outer parts for all. The first is not a reduction with an init,
        and no outer part is of a reduction.

    Rewrites:
        for i in range(n):              for i in range(n):
            for j in range(m):              with block(outer_B_C_):
                with block(B): ...              v_o = i
            for j in range(m):      ->          for j in range(m):
                with block(C): ...                  with block(B): ...
                                                for j in range(m):
                                                    with block(C): ...

    Returns:
        The program, and the name of the outer block.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("blockize", func)
    scope, sites = _neighbours(func, names, refuse)
    path = common_path(sites)
    top = path[-1]
    parts = _parts_with_same_outer(sites, top, refuse, keep_unit_iters=preserve_unit_iters)
    if sites[0].block.init is not None:
        reason = f"block {sites[0].name} is a reduction with an init: it can't give its iterators"
        raise refuse(f"{reason} to the outer block", sites[0].realize, "block_kind")
    name = fresh_block_name(func, "outer_" + "".join(f"{name}_" for name in names))
    outer = _outer_of_all(name, parts, [site.loops_inside(top) for site in sites])
    around = _children(top)
    first = _child_number(top, sites[0])
    body = seq(*around[:first], outer, *around[first + len(sites) :])
    return replace_at(func, (*scope.path[:-1], *path, body_of(top)), body), name


def _parts_with_same_outer(
    sites: Sequence[PlacedBlock], top: Stmt, refuse: Refuse, *, keep_unit_iters: bool
) -> list[Blockized]:
    """Return the parts of consecutive blocks below a statement, or refuse."""
    first = _child_number(top, sites[0])
    parts: list[Blockized] = []
    for number, site in enumerate(sites):
        child = _children(top)[_child_number(top, site)]
        if _child_number(top, site) != first + number or len(list(_blocks(child))) != 1:
            reason = (
                f"block {site.name} does not directly follow the previous one, alone in its loops"
            )
            raise refuse(reason, site.realize, "structure")
        division = _divided(site, child, site.loops_inside(top), refuse, keep_unit_iters)
        outer_iters = parts[0].outer_iters if parts else None
        _require_same_outer(site, division, parts, refuse)
        parts.append(
            blockized(site, division, keep_unit_iters=keep_unit_iters, outer_iters=outer_iters)
        )
    return parts


def _outer_of_all(
    name: str, parts: Sequence[Blockized], loops: Sequence[Sequence[For]]
) -> BlockRealize:
    """Return the outer block around several inner blocks, each with its inner loops."""
    nests = [_nest(part.inner, inside) for part, inside in zip(parts, loops, strict=True)]
    reads: list[BufferRegion] = []
    writes: list[BufferRegion] = []
    for part, inside, nest in zip(parts, loops, nests, strict=True):
        reads += _reads(part, inside, nest)
        writes += _relaxed(part.writes, inside)
    block = Block(name, parts[0].outer_iters, _united(reads), _united(writes), seq(*nests))
    division = parts[0].division
    values = tuple(part.value for part in division.outer)
    return BlockRealize(values, division.outer_predicate, block)


def _neighbours(
    func: PrimFunc, names: Sequence[str], refuse: Refuse
) -> tuple[BlockScope, list[PlacedBlock]]:
    if len(names) < 2:
        raise refuse(
            "expected a list of at least two blocks: for one block, give its loop",
            func,
            "invalid_argument",
        )
    scope, first = scope_of_block(func, names[0], refuse)
    by_name = {site.name: site for site in scope.sites}
    for name in names[1:]:
        if name not in by_name:
            raise refuse(
                f"block {name} is not in the scope of block {names[0]}", first.realize, "structure"
            )
    sites = [by_name[name] for name in names]
    for before, after in pairwise(sites):
        if scope.position(before) >= scope.position(after):
            reason = f"block {after.name} does not come after block {before.name}"
            raise refuse(
                f"{reason}: name the blocks in program order", after.realize, "invalid_argument"
            )
    return scope, sites


def _require_same_outer(
    site: PlacedBlock, division: Division, parts: Sequence[Blockized], refuse: Refuse
) -> None:
    for iter_var, part in zip(site.block.iter_vars, division.outer, strict=True):
        if iter_var.kind != "spatial" and not part.is_unit:
            reason = f"iterator {iter_var.var.name} of block {site.name} is reduced by outer loops"
            raise refuse(reason, site.realize, "block_kind")
    if parts and (
        division.outer != parts[0].division.outer
        or division.outer_predicate != parts[0].division.outer_predicate
    ):
        reason = f"the outer loops bind the iterators of block {site.name} in another way than"
        raise refuse(f"{reason} those of the first", site.realize, "block_kind")


def _children(stmt: Stmt) -> tuple[Stmt, ...]:
    body = body_of(stmt)
    return body.stmts if isinstance(body, Seq) else (body,)


def _child_number(top: Stmt, site: PlacedBlock) -> int:
    return next(n for n, child in enumerate(_children(top)) if site.is_under(child))


def _blocks(stmt: Stmt) -> Sequence[Stmt]:
    return [stmt] if isinstance(stmt, BlockRealize) else list(child_blocks(stmt))


def _united(regions: Sequence[BufferRegion]) -> tuple[BufferRegion, ...]:
    """Return one region a buffer, the last buffer first."""
    by_buffer: dict[object, BufferRegion] = {}
    for region in regions:
        earlier = by_buffer.get(region.buffer)
        by_buffer[region.buffer] = region if earlier is None else union(earlier, region)
    return tuple(reversed(by_buffer.values()))
