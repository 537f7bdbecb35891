"""The shared part of `reindex_cache_read` and `reindex_cache_write`: copy over a block's loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.extents import UNKNOWN
from compiler.ir.arith.iter_map import variables, variables_of
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, walk
from compiler.ir.text.print_expr import show_expr
from compiler.schedule.error import Refuse
from compiler.schedule.index.index_map import IndexMapError, IndexMapLike, as_index_map
from compiler.schedule.legality.block_kind import extents_of_iterators
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.rewrite.cache import (
    CopyLocation,
    cache_of,
)
from compiler.schedule.rewrite.copy_block import is_passed_on, point_of, read_to_find
from compiler.schedule.rewrite.rewrite_access import AccessRewriter
from compiler.schedule.tree.tree import (
    find_block,
    fresh_block_name,
    replace_at,
)


@dataclass(frozen=True)
class Reindexed:
    """An element that a block accesses, and its index in a new buffer, by the block's iterators.

    `iter_vars` are the iterators of the block that determine the element.
    """

    site: PlacedBlock
    far: Load
    near: Load
    iter_vars: tuple[IterVar, ...]

    def nest(self, name: str, location: CopyLocation, *, is_read: bool) -> Stmt:
        """Return the block's loops below a position, with a copy instead of the block."""
        block = self.site.block
        new = {
            i.var: IterVar(Var(i.var.name, i.var.dtype), i.extent, "spatial")
            for i in self.iter_vars
        }
        names = {old: i.var for old, i in new.items()}
        source, target = (self.far, self.near) if is_read else (self.near, self.far)
        read_at = tuple(substitute(i, names) for i in source.indices)
        write_at = tuple(substitute(i, names) for i in target.indices)
        store = Store(target.buffer, write_at, Load(source.buffer, read_at))
        copy = Block(
            name,
            tuple(new.values()),
            (point_of(source.buffer, read_at), *read_to_find(store, source.buffer)),
            (point_of(target.buffer, write_at),),
            store,
        )
        pairs = zip(block.iter_vars, self.site.realize.iter_values, strict=True)
        values = [value for i, value in pairs if i.var in new]
        used = {n for value in values for n in walk(value) if isinstance(n, Var)}
        inside = [loop for loop in self.site.loops_inside(location.path[-1]) if loop.var in used]
        loops = {loop.var: Var(loop.var.name, loop.var.dtype) for loop in inside}
        body: Stmt = BlockRealize(tuple(substitute(v, loops) for v in values), TRUE, copy)
        for loop in reversed(inside):
            body = For(loops[loop.var], loop.extent, body)
        return body


def reindexed(
    scope: BlockScope, site: PlacedBlock, buffer: Buffer, memory_scope: str, index_map: IndexMapLike
) -> Reindexed:
    """Return the index in a new buffer of the element that a block accesses.

    Raises:
        ScheduleError: If the block accesses several elements in a run, or does not always run; if
            the map does not fit the block, does not use the same iterators as the index in the
            buffer, or is not injective.
    """
    refuse = scope.refuse
    indices = only_indices(site, buffer, refuse)
    block_vars = [i.var for i in site.block.iter_vars]
    extents = extents_of_iterators(site.block)
    try:
        layout = as_index_map(index_map, len(block_vars))
        layout = layout.with_dtype(dtype_of(block_vars[0])) if block_vars else layout
        sizes = layout.map_shape([extents[var] for var in block_vars])
        copy_indices = layout.map_indices(block_vars, extents)
    except IndexMapError as error:
        raise refuse(str(error), site.realize, "invalid_argument") from None
    used = _used_iterators(site, buffer, indices, copy_indices, refuse)
    _require_runs_always(site, {i.var for i in used}, refuse)
    used_extents = {i.var: extents[i.var] for i in used}
    if not _is_injective(copy_indices, indices, used_extents):
        reason = f"the map {layout} may send different elements of {buffer.name} to one place"
        raise refuse(reason, site.realize, "not_proved")
    require_fixed_extents(scope, site, used)
    if any(used_extents[i.var] >= UNKNOWN for i in used):
        reason = f"the extents of block {site.name}'s iterators are symbolic: the shape of a copy"
        raise refuse(
            f"{reason} under a map can't be found; specialise the program first",
            site.realize,
            "not_proved",
        )
    dtype = dtype_of(block_vars[0]) if block_vars else "int32"
    shape = tuple(IntImm(size, dtype) for size in sizes)
    cache = cache_of(scope.func, buffer, memory_scope, shape)
    return Reindexed(site, Load(buffer, indices), Load(cache, copy_indices), used)


def _used_iterators(
    site: PlacedBlock,
    buffer: Buffer,
    indices: Sequence[Expr],
    copy_indices: Sequence[Expr],
    refuse: Refuse,
) -> tuple[IterVar, ...]:
    """Return the iterators that determine the element, in the buffer and in its copy."""
    far, near = _named(indices), _named(copy_indices)
    for iter_var in site.block.iter_vars:
        if (iter_var.var in far) != (iter_var.var in near):
            reason = f"iterator {iter_var.var.name} of block {site.name} names the place in one of"
            raise refuse(
                f"{reason} {buffer.name} and its copy, but not in both", site.realize, "not_proved"
            )
    return tuple(i for i in site.block.iter_vars if i.var in far)


def _is_injective(
    copy_indices: Sequence[Expr], indices: Sequence[Expr], extents: Mapping[Var, int]
) -> bool:
    """Return whether the index in the copy determines the iterators, or the index in the buffer."""
    forms = [normal(index, extents) for index in copy_indices]
    return extents.keys() <= determined(forms, extents) or all(
        normal(index, extents) in forms or not variables_of(normal(index, extents))
        for index in indices
    )


def _require_runs_always(site: PlacedBlock, used: set[Var], refuse: Refuse) -> None:
    """Refuse unless a block runs for every value that its loops give to some of its iterators."""
    pairs = zip(site.block.iter_vars, site.realize.iter_values, strict=True)
    loops = {n for i, v in pairs if i.var in used for n in walk(v) if isinstance(n, Var)}
    predicate = site.realize.predicate
    named = [n for n in walk(predicate) if isinstance(n, Var)]
    others: dict[Var, Expr] = {n: IntImm(0) for n in named}
    is_plain = all(isinstance(stmt, For | Seq) for stmt in site.path[1:-1])
    # It suffices that it runs in the first iteration of the other loops.
    holds = loops.isdisjoint(others) and simplify(substitute(predicate, others)) == TRUE
    if not is_plain or not holds:
        reason = f"block {site.name} does not run for all values of its iterators"
        raise refuse(
            f"{reason}: a copy over its loops would touch more", site.realize, "not_proved"
        )


def _named(indices: Sequence[Expr]) -> set[Var]:
    return {node for index in indices for node in walk(index) if isinstance(node, Var)}


def use_copy(func: PrimFunc, copy: Reindexed) -> PrimFunc:
    """Return the program with a block that accesses the copy instead of the buffer."""
    path = find_block(func, copy.site.name)
    assert path is not None, "the block is in the program"
    near = copy.near
    region = point_of(near.buffer, near.indices)
    rewriter = AccessRewriter(
        copy.far.buffer, near.buffer, lambda *_: near.indices, lambda *_: region
    )
    return replace_at(func, path, rewriter.stmt(path[-1], {}))


def copy_name(func: PrimFunc, buffer: Buffer, memory_scope: str) -> str:
    """Return the name of the block that copies a buffer."""
    return fresh_block_name(func, f"{buffer.name}_{memory_scope}")


def require_fixed_extents(
    scope: BlockScope, site: PlacedBlock, iter_vars: Sequence[IterVar]
) -> None:
    """Refuse iterators with varying extents: these can't be dimensions of a buffer."""
    symbols = set(symbolic_vars(scope.func))
    for iter_var in iter_vars:
        if not variables(iter_var.extent) <= symbols:
            reason = f"the extent of iterator {iter_var.var.name} of block {site.name} varies:"
            reason = f"{reason} {show_expr(iter_var.extent)}; a dimension of a buffer can't"
            raise scope.refuse(reason, site.realize, "loop_kind")


def only_indices(site: PlacedBlock, buffer: Buffer, refuse: Refuse) -> tuple[Expr, ...]:
    """Return the indices at which a block accesses a buffer, the same in all its accesses."""
    if any(isinstance(node, Block) for node in walk(site.block) if node is not site.block):
        raise refuse(f"block {site.name} holds other blocks", site.realize, "structure")
    distinct = {access.indices for access in site.facts.accesses(buffer)}
    if not distinct or is_passed_on(site.realize, buffer) or _is_viewed(site.block, buffer):
        reason = f"block {site.name} does not load and store single elements of {buffer.name}"
        raise refuse(reason, site.realize, "not_proved")
    if len(distinct) > 1:
        reason = f"block {site.name} touches {buffer.name} at different places in a run"
        raise refuse(reason, site.realize, "not_proved")
    indices = distinct.pop()
    extents = extents_of_iterators(site.block)
    if any(v not in extents for i in indices for v in walk(i) if isinstance(v, Var)):
        reason = f"block {site.name} does not touch {buffer.name} at a place of its iterators alone"
        raise refuse(reason, site.realize, "not_proved")
    return tuple(simplify(i, extents) for i in indices)


def _is_viewed(block: Block, buffer: Buffer) -> bool:
    return any(match.source.buffer == buffer for match in block.match_buffers)
