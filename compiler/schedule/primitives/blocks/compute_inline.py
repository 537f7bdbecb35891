"""Inline a block into its consumers: `compute_inline`."""

from __future__ import annotations

from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    Expr,
    Load,
    Stmt,
    Store,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt, substitute, transform, walk, walk_stmts
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.index.solve import iterators_at
from compiler.schedule.legality.block_kind import Unclassified, extents_of_iterators
from compiler.schedule.legality.coverage import covers_reads, writes_whole
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.tree.tree import (
    drop_buffer,
    extents_of,
    find_block,
    loops_below,
    realize_at,
    replace_at,
    with_block,
    without_views,
)


def compute_inline(func: PrimFunc, block: str) -> PrimFunc:
    """Inline a block: compute its value wherever it is read, and remove the block.

    Requires:
        The block is complete, the only writer of one buffer, which is not an output, and stores
        once, at indices that determine its iterators. Its consumers come after it, read only
        elements that it computed, and have no view of the buffer. Its inputs are finished before
        it. Without consumers, the block is only removed.

    Rewrites:
        for i in range(n):             for i in range(n):
            B[i] = f(A[i])       ->        C[i] = g(f(A[i]))
        for i in range(n):
            C[i] = g(B[i])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("compute_inline", func)
    func = without_views(func, block, refuse)
    scope, site = scope_of_block(func, block, refuse)
    store = require_single_store(scope, site)
    scope.require_local(site)
    scope.require_only_writer(site)
    scope.require_inputs_settled(site)
    consumers = scope.consumers(site)
    _require_no_other_use(scope, site, consumers, store.buffer)
    is_whole = writes_whole(site, store.buffer)
    for consumer in consumers:
        if scope.position(consumer) < scope.position(site):
            raise refuse(
                f"block {consumer.name} comes before block {block}", consumer.realize, "dependence"
            )
        _require_no_views(scope, consumer, store.buffer)

    func = replace_at(func, scope.whole_path(site), None)
    for consumer in consumers:
        func = _inline_into(func, consumer.name, site, store, refuse)
        if not is_whole and not covers_reads(site, consumer, store.buffer, is_certain=True):
            reason = f"block {block} is not proved to compute all that block {consumer.name} reads"
            raise refuse(reason, consumer.realize, "not_proved")
    return drop_buffer(func, scope.realize.block.name, store.buffer)


def require_single_store(scope: BlockScope, site: PlacedBlock) -> Store:
    """Return the only store of a complete block, or refuse."""
    kind = site.kind
    if isinstance(kind, Unclassified):
        raise scope.refuse(kind.reason, site.realize, "block_kind")
    if kind != "complete":
        reason = "is a reduction" if kind == "reduction" else "reads what it writes"
        raise scope.refuse(f"block {site.name} {reason}", site.realize, "block_kind")
    if not site.facts.is_leaf:
        raise scope.refuse(
            f"block {site.name} contains loops or blocks: expected a single store",
            site.realize,
            "block_kind",
        )
    store = site.block.body
    if not isinstance(store, Store):
        raise scope.refuse(f"block {site.name} stores more than once", site.realize, "block_kind")
    return store


def _require_no_other_use(
    scope: BlockScope, site: PlacedBlock, consumers: list[PlacedBlock], buffer: Buffer
) -> None:
    """Refuse if the iterators or the predicate of another block than a consumer read a buffer."""
    for other in scope.sites:
        exprs = (*other.realize.iter_values, other.realize.predicate)
        loads = (node for expr in exprs for node in walk(expr) if isinstance(node, Load))
        is_read = any(load.buffer == buffer for load in loads)
        if is_read and (other not in consumers or not writes_whole(site, buffer)):
            reason = f"the iterators of block {other.name} depend on {buffer.name}"
            raise scope.refuse(reason, other.realize, "dependence")


def _require_no_views(scope: BlockScope, consumer: PlacedBlock, buffer: Buffer) -> None:
    """Refuse if a block reads the buffer through a view."""
    for realize in walk_stmts(consumer.realize):
        if not isinstance(realize, BlockRealize):
            continue
        if any(match.source.buffer == buffer for match in realize.block.match_buffers):
            reason = f"block {realize.block.name} has views, through which it may read"
            raise scope.refuse(f"{reason} {buffer.name}", realize, "structure")
    if any(node is buffer.data for node in walk(consumer.realize)):
        reason = (
            f"block {consumer.name} passes the storage of {buffer.name} on, and it would be removed"
        )
        raise scope.refuse(reason, consumer.realize, "structure")


def _inline_into(
    func: PrimFunc, name: str, site: PlacedBlock, store: Store, refuse: Refuse
) -> PrimFunc:
    path = find_block(func, name)
    assert path is not None, "the consumers are in the program"
    realize = realize_at(path)
    extents = dict(extents_of(loops_below(realize)))
    for stmt in walk_stmts(realize):
        if isinstance(stmt, BlockRealize):
            extents.update(extents_of_iterators(stmt.block))

    def on_expr(expr: Expr) -> Expr | None:
        if not isinstance(expr, Load) or expr.buffer != store.buffer:
            return None
        shape = store.buffer.shape
        values = iterators_at(site.block, store.indices, expr.indices, extents, shape)
        if values is None:
            reason = (
                f"block {site.name} writes {store.buffer.name} at indices that do not determine its"
            )
            raise refuse(f"{reason} iterators", site.realize, "not_proved")
        return substitute(store.value, values)

    new = transform(realize, on_expr=on_expr)
    return replace_at(func, path, _with_new_regions(new, store.buffer))


def _with_new_regions(stmt: Stmt, buffer: Buffer) -> Stmt:
    """Recompute the reads of blocks that declared reads of `buffer`, inner blocks first."""
    stmt = map_stmt(stmt, lambda child: _with_new_regions(child, buffer), lambda expr: expr)
    if isinstance(stmt, BlockRealize) and any(r.buffer == buffer for r in stmt.block.reads):
        return with_block(stmt, with_regions(stmt.block))
    return stmt
