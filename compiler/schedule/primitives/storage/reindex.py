"""Access a buffer by a block's iterators, through a copy: `reindex`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from compiler.ir.arith.bounds import bounds
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, walk
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.block_kind import extents_of_iterators
from compiler.schedule.legality.coverage import runs_whole_domain
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.primitives.storage.cache_write import require_no_old_values
from compiler.schedule.rewrite.cache import (
    CopyLocation,
    child_position,
    insert_copy,
    region_buffer,
    require_certain_write,
    require_no_pointer,
    require_steady_indices,
    stmts_of,
)
from compiler.schedule.rewrite.copy_block import point_of, read_to_find
from compiler.schedule.rewrite.placement import require_no_vector_around
from compiler.schedule.rewrite.reindex_cache import only_indices, require_fixed_extents
from compiler.schedule.rewrite.rewrite_access import AccessRewriter
from compiler.schedule.tree.tree import (
    find_block,
    fresh_block_name,
    fresh_buffer_name,
    replace_at,
)

Mode: TypeAlias = Literal["read", "write"]


def reindex(func: PrimFunc, block: str, mode: Mode, index: int) -> tuple[PrimFunc, str]:
    """Let a block access a new buffer by its iterators, and copy from or to the old one.

    The new buffer has a dimension for each iterator that the indices use, in their order.

    Args:
        mode: Whether it is a read or a write of the block.
        index: The number among the reads or writes of the block.

    Requires:
        The block has such a read or write, of whole elements at one index in a run, and contains no
        other blocks. Each of its loops but the innermost contains only the next one; its scope is
        in no vectorized loop. No block in its loops writes what the indices load. For a read, all
        elements that the iterators may address are in the buffer, and no block in its loops writes
        it. For a write, no other block in the block's loops accesses the buffer; the block does not
        read its previous contents, writes its element in every run, and runs for the whole ranges
        of its iterators.

    Rewrites:
        for i, j in T.grid(n, m):            for ax0, ax1 in T.grid(n, m):
            B[i, j] = A[j, i * 2]    ->          A_reindex[ax0, ax1] = A[ax1, ax0 * 2]
                                             for i, j in T.grid(n, m):
                                                 B[i, j] = A_reindex[i, j]

    Returns:
        The program, and the name of the block that copies.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("reindex", func)
    scope, site = scope_of_block(func, block, refuse)
    regions = site.block.reads if mode == "read" else site.block.writes
    buffer = region_buffer(regions, index, mode, site.realize, refuse)
    require_no_pointer(scope, buffer)
    indices = only_indices(site, buffer, refuse)
    position, others = _nest_around(scope, site)
    require_no_vector_around(scope.path, refuse)
    if mode == "read":
        _require_readable([site, *others], buffer, indices, refuse)
    else:
        _require_movable(site, others, buffer, refuse)

    named = {node for i in indices for node in walk(i) if isinstance(node, Var)}
    used = tuple(i for i in site.block.iter_vars if i.var in named)
    require_fixed_extents(scope, site, used)
    name = f"{buffer.name}_reindex"
    data = Var(fresh_buffer_name(func, name), "handle")
    new = Buffer(data, tuple(i.extent for i in used), buffer.dtype, buffer.scope)
    iterators = tuple(i.var for i in used)
    far, near = Load(buffer, indices), Load(new, iterators)
    title = fresh_block_name(func, f"{name}_reindex" if mode == "read" else name)
    nest = _copy(title, used, *((far, near) if mode == "read" else (near, far)))

    location = CopyLocation(site.path[:1], position if mode == "read" else position + 1)
    require_steady_indices(scope, indices, location, [site])
    func = insert_copy(scope, location, nest, new)
    return _redirected(func, block, buffer, new, iterators), title


def _nest_around(scope: BlockScope, site: PlacedBlock) -> tuple[int, list[PlacedBlock]]:
    """Return the statement of its scope that contains a block, and the other blocks in it.

    Raises:
        ScheduleError: If a loop around the innermost one contains more than the next loop.
    """
    for outer, inner in pairwise(site.loops):
        if outer.body is not inner:
            raise scope.refuse(
                f"loop {outer.var.name} holds more than the next loop", outer, "structure"
            )
    position = child_position(scope.realize, site)
    nest = stmts_of(scope.realize)[position]
    return position, [s for s in scope.sites if s is not site and s.is_under(nest)]


def _require_readable(
    sites: Sequence[PlacedBlock], buffer: Buffer, indices: tuple[Expr, ...], refuse: Refuse
) -> None:
    """Refuse unless a block's input can be copied before its loops, which contain some blocks."""
    site = sites[0]
    for other in sites:
        if other.writes(buffer):
            reason = f"block {other.name} writes {buffer.name}, which block {site.name} reads"
            raise refuse(f"{reason} in the same loops", other.realize, "dependence")
    require_in_bounds(site, buffer, indices, refuse)


def require_in_bounds(
    site: PlacedBlock, buffer: Buffer, indices: tuple[Expr, ...], refuse: Refuse
) -> None:
    """Refuse if a block's iterators may address an element outside of a buffer.

    The block may read it under a condition, but a copy of it has no condition.
    """
    extents = extents_of_iterators(site.block)
    sizes = {i.var: i.extent for i in site.block.iter_vars}
    for index, size in zip(indices, buffer.shape, strict=True):
        if isinstance(index, Var) and sizes[index] == size:
            continue
        interval = bounds(index, extents)
        limit = size.value if isinstance(size, IntImm) else 0
        if interval is None or interval[0] < 0 or interval[1] >= limit:
            reason = f"block {site.name} is not proved to address only elements of {buffer.name}"
            raise refuse(f"{reason}, for all values of its iterators", site.realize, "not_proved")


def _require_movable(
    site: PlacedBlock, others: Sequence[PlacedBlock], buffer: Buffer, refuse: Refuse
) -> None:
    """Refuse unless a block's output can be copied after its loops, which contain others, too."""
    for other in others:
        if other.touches(buffer):
            reason = f"block {other.name} touches {buffer.name}, which block {site.name} writes"
            raise refuse(f"{reason} in the same loops", other.realize, "dependence")
    require_no_old_values(site, buffer, refuse)
    require_certain_write(site, buffer, refuse)
    if not runs_whole_domain(site):
        reason = f"block {site.name} is not proved to run for the whole of its iterators' ranges"
        raise refuse(reason, site.realize, "dependence")


def _copy(name: str, iter_vars: tuple[IterVar, ...], source: Load, target: Load) -> Stmt:
    """Return loops over some iterators that copy one element to another."""
    new = tuple(
        IterVar(Var(f"v{n}", dtype_of(i.var)), i.extent, "spatial") for n, i in enumerate(iter_vars)
    )
    values = {old.var: i.var for old, i in zip(iter_vars, new, strict=True)}
    read_at = tuple(substitute(i, values) for i in source.indices)
    write_at = tuple(substitute(i, values) for i in target.indices)
    store = Store(target.buffer, write_at, Load(source.buffer, read_at))
    block = Block(
        name,
        new,
        (point_of(source.buffer, read_at), *read_to_find(store, source.buffer)),
        (point_of(target.buffer, write_at),),
        store,
    )
    loops = [Var(f"ax{n}", dtype_of(i.var)) for n, i in enumerate(new)]
    body: Stmt = BlockRealize(tuple(loops), IntImm(1, "bool"), block)
    for loop, iter_var in zip(reversed(loops), reversed(new), strict=True):
        body = For(loop, iter_var.extent, body)
    return body


def _redirected(
    func: PrimFunc, name: str, old: Buffer, new: Buffer, iterators: tuple[Expr, ...]
) -> PrimFunc:
    path = find_block(func, name)
    assert path is not None, "the block is in the program"
    region = point_of(new, iterators)
    rewriter = AccessRewriter(old, new, lambda *_: iterators, lambda *_: region)
    return replace_at(func, path, rewriter.stmt(path[-1], {}))
