"""Keep the overlap of consecutive tiles in a ring buffer: `rolling_buffer`."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from compiler.ir.analysis.regions import access_regions
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.guards import conjuncts, upper_bound
from compiler.ir.arith.iter_map import terms_of, variables, variables_of
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Compare,
    Expr,
    For,
    IntImm,
    Load,
    Logic,
    Range,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt, transform_expr, walk_stmts
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.index.access import BlockAccess, facts_of
from compiler.schedule.index.region import span_of
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.coverage import covers_reads
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock, conditions
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.rewrite.cache import common_path, region_buffer
from compiler.schedule.tree.tree import loops_on, replace_at


def rolling_buffer(func: PrimFunc, block: str, write_index: int) -> PrimFunc:
    """Keep only the overlap of consecutive tiles of a buffer, and compute only new elements.

    Along the outermost dimension with overlapping tiles, the buffer becomes a ring of one tile.

    Args:
        write_index: The number of the write among those of the block.

    Requires:
        The block is complete or a reduction, under no condition, and the only writer of the
        buffer, which is not an output. The innermost loop around the block and all readers holds a
        tile of the buffer: the block writes there all that is read, and comes first. The tiles
        begin at multiples of loops, along each dimension of another one (or at a half, a third,
        ... of a loop), and overlap along at least one. Along these dimensions, an iterator is the
        index. The loops around are serial, and so are those that move elements of the ring. The
        predicate is on single iterators. The inputs of the block do not change between tiles.

    Rewrites:
        for i in range(n):                          for i in range(n):
            for j in range(3):                          for j in range(3):
                B[i + j] = f(i + j)            ->           if i < 1 or 2 <= j:
            C[i] = B[i] + B[i + 2]                              B[(i + j) % 3] = f(i + j)
                                                        C[i] = B[i % 3] + B[(i + 2) % 3]

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("rolling_buffer", func)
    scope, site = scope_of_block(func, block, refuse)
    buffer = region_buffer(site.block.writes, write_index, "write", site.realize, refuse)
    _require_producer(scope, site, buffer)
    path = common_path([site, *scope.readers(buffer)])
    if not isinstance(path[-1], For):
        reason = f"block {site.name} and the readers of {buffer.name} share no loop"
        raise refuse(reason, site.realize, "structure")
    around = loops_on(path)
    for loop in around:
        if loop.kind not in ("serial", "unrolled"):
            raise refuse(
                f"loop {loop.var.name} is {loop.kind}: tiles must come in order", loop, "loop_kind"
            )
    tiles = _tiles(site, buffer, around, refuse)
    rolling = next((loop for loop in around if any(t.loop is loop.var for t in tiles)), None)
    if rolling is None:
        reason = f"the tiles of {buffer.name} that block {site.name} writes do not overlap"
        raise refuse(reason, site.realize, "not_proved")
    _require_readers_in_tile(scope, site, buffer)
    _require_lasting(scope, site, rolling)

    axis = next(n for n, tile in enumerate(tiles) if tile.loop is rolling.var)
    concurrent = _concurrent(scope)
    _require_in_order(scope, buffer, axis, concurrent)
    conditions_ = (*conjuncts(site.realize.predicate), *_is_new(site, tiles))
    new = replace(site.realize, predicate=conjunction(conditions_))
    func = replace_at(func, scope.whole_path(site), new)
    scope, _ = scope_of_block(func, block, refuse)
    ring = _Ring.of(buffer, axis, tiles[axis].extent, concurrent)
    return replace_at(func, scope.path, ring.scope(scope.realize))


def _concurrent(scope: BlockScope) -> frozenset[Var]:
    """Return the loops of a scope whose iterations run in no order."""
    loops = (stmt for stmt in walk_stmts(scope.realize) if isinstance(stmt, For))
    return frozenset(loop.var for loop in loops if loop.kind not in ("serial", "unrolled"))


def _require_in_order(
    scope: BlockScope, buffer: Buffer, axis: int, concurrent: AbstractSet[Var]
) -> None:
    for site in scope.sites:
        values = site.realize.iter_values
        if site.touches(buffer) and axis < len(values):
            for var in variables(values[axis]) & concurrent:
                reason = f"iterator {axis} of block {site.name} takes its value from loop"
                reason = f"{reason} {var.name}, which runs in no order"
                raise scope.refuse(f"{reason}: it can't follow the ring", site.realize, "loop_kind")


@dataclass(frozen=True)
class _Tile:
    """The elements that are written along a dimension in one iteration of the shared loops.

    Args:
        loop: The loop that advances it by less than its extent; None if tiles do not overlap.
        overlap: The number of elements that it shares with the next tile.
    """

    extent: int
    loop: Var | None = None
    overlap: int = 0


def _require_producer(scope: BlockScope, site: PlacedBlock, buffer: Buffer) -> None:
    refuse = scope.refuse
    if isinstance(site.kind, Unclassified):
        raise refuse(site.kind.reason, site.realize, "block_kind")
    if site.kind not in ("complete", "reduction") or not site.facts.is_leaf:
        reason = f"block {site.name} does not only compute one element from its inputs"
        raise refuse(reason, site.realize, "block_kind")
    if conditions(site):
        raise refuse(f"block {site.name} is under a condition", conditions(site)[0], "structure")
    scope.require_local(site)
    scope.require_only_writer(site)
    if buffer.strides or not all(isinstance(size, IntImm) for size in buffer.shape):
        raise refuse(f"the shape of {buffer.name} is not known", site.realize, "not_proved")
    values = {terms_of(value) for value in site.values}
    for condition in conjuncts(site.realize.predicate):
        bound = upper_bound(condition, site.extents)
        terms = None if bound is None else bound[0]
        if terms is None or not {terms, frozenset((a, -c) for a, c in terms)} & values:
            reason = f"the predicate of block {site.name} is not on single iterators"
            raise refuse(reason, site.realize, "not_proved")


def _tiles(
    site: PlacedBlock, buffer: Buffer, around: Sequence[For], refuse: Refuse
) -> tuple[_Tile, ...]:
    """Return the tile along each dimension, or refuse."""
    access = next(access for access in site.facts.writes if access.buffer == buffer)
    shared = {loop.var for loop in around}
    fixed = set(site.extents) - ({loop.var for loop in site.loops} - shared)
    tiles: list[_Tile] = []
    moved: list[Var] = []
    for form in site.indices(access):
        span = span_of(form, fixed, site.extents)
        step = None if span is None else _step(span.low)
        if span is None or step is None:
            reason = f"the tiles of {buffer.name} do not begin at multiples of a loop"
            raise refuse(reason, site.realize, "not_proved")
        moved.extend(variables_of(span.low))
        loop, stride = step
        overlaps = loop in shared and span.extent > stride
        tiles.append(
            _Tile(span.extent, loop, span.extent - stride) if overlaps else _Tile(span.extent)
        )
    for number, tile in enumerate(tiles):
        if tile.loop is None:
            continue
        if moved.count(tile.loop) > 1:
            reason = f"loop {tile.loop.name} moves tiles of {buffer.name} along two dimensions"
            raise refuse(reason, site.realize, "not_proved")
        iter_vars = site.block.iter_vars
        if number >= len(iter_vars) or access.indices[number] != iter_vars[number].var:
            reason = f"dimension {number} of {buffer.name} is not indexed by iterator {number}"
            raise refuse(f"{reason} of block {site.name}", site.realize, "not_proved")
    return tuple(tiles)


def _step(low: Affine) -> tuple[Var | None, int] | None:
    """Parse the start of tiles as `loop * stride // divisor`; return the loop and the largest step.

    None if it has another form.
    """
    if not low.terms:
        return None, 0
    if low.const or len(low.terms) > 1 or low.terms[0][1] < 1:
        return None
    match low.terms[0]:
        case Var() as loop, stride:
            return loop, stride
        case BinOp("//", Var() as loop, IntImm(divisor)), 1:
            return loop, -(-1 // divisor)
        case BinOp("//", BinOp("*", Var() as loop, IntImm(stride)), IntImm(divisor)), 1:
            return loop, -(-stride // divisor)
        case _:
            return None


def _require_readers_in_tile(scope: BlockScope, site: PlacedBlock, buffer: Buffer) -> None:
    for other in scope.readers(buffer):
        if other is site:
            continue
        is_after = scope.position(other) > scope.position(site)
        if not (is_after and covers_reads(site, other, buffer, is_certain=True)):
            reason = f"block {other.name} may read of {buffer.name} what block {site.name} has not"
            raise scope.refuse(f"{reason} written in the same tile", other.realize, "dependence")


def _require_lasting(scope: BlockScope, site: PlacedBlock, rolling: For) -> None:
    """Refuse if an element may have another value when it is computed again for the next tile."""
    pending = [site]
    earlier_sites: list[PlacedBlock] = []
    while pending:
        reader = pending.pop()
        earlier_sites.append(reader)
        for producer in scope.producers(reader):
            if not producer.is_under(rolling) or producer in earlier_sites:
                continue
            shared = producer.facts.written_buffers()
            alone = all(scope.writers(buffer) == [producer] for buffer in shared)
            if producer.kind not in ("complete", "reduction") or not alone:
                reason = f"block {producer.name} changes under loop {rolling.var.name} what block"
                raise scope.refuse(f"{reason} {reader.name} reads", producer.realize, "dependence")
            pending.append(producer)


def _is_new(site: PlacedBlock, tiles: Sequence[_Tile]) -> tuple[Expr, ...]:
    """Return the conditions that exclude elements of the previous tile."""
    guards: list[Expr] = []
    for tile, value in zip(tiles, site.values, strict=False):
        if tile.loop is None:
            continue
        dtype = dtype_of(tile.loop)
        outer_terms = tuple(
            (atom, c) for atom, c in value.terms if tile.loop not in variables(atom)
        )
        inner = Affine(outer_terms, value.const, value.dtype).to_expr()
        is_first = Compare("<", tile.loop, IntImm(1, dtype))
        past = Compare("<=", IntImm(tile.overlap, dtype_of(inner)), inner)
        guards.append(Logic("or", is_first, past))
    return tuple(guards)


@dataclass(frozen=True)
class _Ring:
    """A buffer, and the buffer of one tile that replaces it along an axis."""

    old: Buffer
    new: Buffer
    axis: int
    extent: int
    concurrent: frozenset[Var]

    @classmethod
    def of(cls, buffer: Buffer, axis: int, extent: int, concurrent: frozenset[Var]) -> _Ring:
        """Return the ring of a buffer."""
        size = IntImm(extent, dtype_of(buffer.shape[axis]))
        shape = (*buffer.shape[:axis], size, *buffer.shape[axis + 1 :])
        data = Var(buffer.name, buffer.data.dtype)
        return cls(buffer, replace(buffer, data=data, shape=shape), axis, extent, concurrent)

    def scope(self, realize: BlockRealize) -> BlockRealize:
        """Return the scope with the ring instead of the buffer."""
        body = self._stmt(realize.block.body)
        alloc_buffers = tuple(self.new if b == self.old else b for b in realize.block.alloc_buffers)
        return replace(
            realize, block=replace(realize.block, body=body, alloc_buffers=alloc_buffers)
        )

    def _stmt(self, stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, self._stmt, lambda e: transform_expr(e, self._load))
        match new:
            case Store(buffer, indices, value) if buffer == self.old:
                return Store(self.new, self._indices(indices), value)
            case BlockRealize(values, _, block):
                moved_by = [variables(value) for value in values[self.axis : self.axis + 1]]
                in_order = all(loop_vars.isdisjoint(self.concurrent) for loop_vars in moved_by)
                return replace(new, block=self._block(block, in_order=in_order))
            case _:
                return new

    def _load(self, expr: Expr) -> Expr | None:
        if isinstance(expr, Load) and expr.buffer == self.old:
            return Load(self.new, self._indices(expr.indices))
        return None

    def _indices(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        index = indices[self.axis]
        ring = BinOp("%", index, IntImm(self.extent, dtype_of(index)))
        return (*indices[: self.axis], ring, *indices[self.axis + 1 :])

    def _block(self, block: Block, *, in_order: bool) -> Block:
        """Return a block whose iterator along the axis may run in order, with new regions."""
        iter_vars = list(block.iter_vars)
        if in_order and self.axis < len(iter_vars) and iter_vars[self.axis].kind == "spatial":
            iter_vars[self.axis] = replace(iter_vars[self.axis], kind="opaque")
        facts = facts_of(block)
        reads, writes = access_regions(block.body, block.init)
        return replace(
            block,
            iter_vars=tuple(iter_vars),
            reads=self._regions(block.reads, reads, facts.reads),
            writes=self._regions(block.writes, writes, facts.writes),
        )

    def _regions(
        self,
        old: tuple[BufferRegion, ...],
        new: tuple[BufferRegion, ...],
        accesses: tuple[BlockAccess, ...],
    ) -> tuple[BufferRegion, ...]:
        of_ring = [region for region in new if region.buffer == self.new]
        ring_indices = dict.fromkeys(
            access.indices[self.axis]
            for access in accesses
            if access.buffer == self.new and not access.inner
        )
        if not of_ring:
            return old
        ranges = list(of_ring[0].region)
        if len(ring_indices) > 1:
            ranges[self.axis] = _hull(list(ring_indices))
        region = BufferRegion(self.new, tuple(ranges))
        return tuple(region if old_region.buffer == self.old else old_region for old_region in old)


def _hull(indices: list[Expr]) -> Range:
    """Return the range from the least of some indices to the greatest."""
    least = greatest = indices[0]
    for index in indices[1:]:
        least, greatest = BinOp("min", least, index), BinOp("max", greatest, index)
    unit = IntImm(1, dtype_of(least))
    return Range(least, BinOp("-", BinOp("+", greatest, unit), least))
