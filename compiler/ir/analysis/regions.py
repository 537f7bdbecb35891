"""Find the regions that a block reads and writes, in terms of its iterators."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal

from compiler.ir.arith.affine import affine
from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    MatchBuffer,
    Ramp,
    Range,
    Seq,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.visit import map_region, substitute, walk

EXPLICIT_REGIONS = {"read": "explicit_read_region", "write": "explicit_write_region"}
"""Annotations of a block that list the numbers of regions which its author declared."""

_ONE = IntImm(1)
_NO_VARS: frozenset[Var] = frozenset()


def access_regions(
    body: Stmt, init: Stmt | None = None, views: tuple[MatchBuffer, ...] = ()
) -> tuple[tuple[BufferRegion, ...], tuple[BufferRegion, ...]]:
    """Return the regions read and written, each buffer once, in the order of first access.

    The writes of `init` do not count as read: the update reads only what the block itself wrote. An
    access to a view counts as an access to the whole region of the view.
    """
    accesses = _RegionAccesses(views={view.buffer: view.source for view in views})
    if init is not None:
        accesses.stmt(init)
    initialised = tuple(accesses.writes)
    accesses.stmt(body)
    reads = tuple(r for b, r in accesses.reads.items() if init is None or b not in initialised)
    return reads, tuple(accesses.writes.values())


def with_regions(block: Block) -> Block:
    """Return `block` with its reads and writes computed from its body.

    The body does not say what opaque calls touch of the buffers that they get: regions of those are
    kept as they are declared, and so are those that an annotation names.
    """
    reads, writes = access_regions(block.body, block.init, block.match_buffers)
    local = set(block.alloc_buffers)
    passed = _passed_on(block)
    explicit_reads, explicit_writes = (
        explicit_regions(block, "read"),
        explicit_regions(block, "write"),
    )
    kept_reads = tuple(r for r in block.reads if r.buffer in passed or r in explicit_reads)
    kept_writes = tuple(w for w in block.writes if w.buffer in passed or w in explicit_writes)
    without_reads = local | {r.buffer for r in kept_reads}
    without_writes = local | {w.buffer for w in kept_writes}
    return Block(
        block.name,
        block.iter_vars,
        (*kept_reads, *(r for r in reads if r.buffer not in without_reads)),
        (*kept_writes, *(w for w in writes if w.buffer not in without_writes)),
        block.body,
        block.init,
        block.alloc_buffers,
        block.annotations,
        block.match_buffers,
    )


def explicit_regions(block: Block, mode: Literal["read", "write"]) -> tuple[BufferRegion, ...]:
    """Return the regions that an annotation of a block declares."""
    numbers = dict(block.annotations).get(EXPLICIT_REGIONS[mode], ())
    regions = block.reads if mode == "read" else block.writes
    if not isinstance(numbers, tuple):
        return ()
    return tuple(regions[n] for n in numbers if isinstance(n, int) and 0 <= n < len(regions))


def _passed_on(block: Block) -> set[Buffer]:
    """Return the declared buffers whose storage opaque calls of a block get, also by views."""
    handles = {n for n in walk(block.body) if isinstance(n, Var) and n.dtype == "handle"}
    if not handles:
        return set()
    viewed = {m.source.buffer.data for m in block.match_buffers if m.buffer.data in handles}
    regions = (*block.reads, *block.writes)
    return {r.buffer for r in regions if r.buffer.data in handles | viewed}


def read_outside_blocks(stmt: Stmt) -> tuple[BufferRegion, ...]:
    """Return the regions that loops, conditions and iterator values below a statement read.

    Reads inside of blocks below it are not included: those blocks declare them.
    """
    accesses = _RegionAccesses(enters_blocks=False)
    accesses.stmt(stmt)
    return tuple(accesses.reads.values())


@dataclass
class _RegionAccesses:
    reads: dict[Buffer, BufferRegion] = field(default_factory=dict)
    writes: dict[Buffer, BufferRegion] = field(default_factory=dict)
    loops: dict[Var, int] = field(default_factory=dict)  # loops inside the block, by extent
    views: dict[Buffer, BufferRegion] = field(default_factory=dict)
    unknown: set[Var] = field(default_factory=set)  # what may be anything inside the block
    enters_blocks: bool = True

    def stmt(self, stmt: Stmt) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self._exprs(value, *indices)
                self._add(self.writes, _point(buffer, indices))
            case Evaluate(value):
                self._exprs(value)
            case Let(var, value, body):
                self._exprs(value)
                self.unknown.add(var)
                self.stmt(body)
            case Seq(stmts):
                for s in stmts:
                    self.stmt(s)
            case If(condition, then, otherwise):
                self._exprs(condition)
                self.stmt(then)
                if otherwise is not None:
                    self.stmt(otherwise)
            case While(condition, body):
                self._exprs(condition)
                self.stmt(body)
            case For(var, extent, body):
                self._exprs(extent)
                if isinstance(extent, IntImm):
                    self.loops[var] = extent.value
                else:
                    self.unknown.add(var)
                self.stmt(body)
            case BlockRealize():
                self._realize(stmt)
            case Allocate(buffer, body):
                self.stmt(body)
                self.reads.pop(buffer, None)
                self.writes.pop(buffer, None)

    def _realize(self, realize: BlockRealize) -> None:
        """Add the regions of a nested block, in terms of the values of its iterators."""
        self._exprs(*realize.iter_values, realize.predicate)
        if not self.enters_blocks:
            return
        block = realize.block
        mapping = {
            iter_var.var: value
            for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True)
        }
        for kind, regions in ((self.reads, block.reads), (self.writes, block.writes)):
            for region in regions:
                self._add(kind, map_region(region, lambda e: _replaced(e, mapping)))

    def _exprs(self, *exprs: Expr) -> None:
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, Load):
                    self._add(self.reads, _point(node.buffer, node.indices))

    def _add(self, kind: dict[Buffer, BufferRegion], region: BufferRegion) -> None:
        region = self.views.get(region.buffer, region)
        buffer = region.buffer
        whole = relaxed(region, self.loops, self.unknown)
        earlier = kind.get(buffer)
        kind[buffer] = whole if earlier is None else union(earlier, whole)


def relaxed(
    region: BufferRegion, loops: Mapping[Var, int], unknown: AbstractSet[Var] = _NO_VARS
) -> BufferRegion:
    """Return the region that covers a region over all iterations of some loops.

    Args:
        loops: The loops with known extents.
        unknown: The loops that may run for any number of iterations.
    """
    if unknown:
        ranges_covered = tuple(
            Range(IntImm(0), extent) if _has_any(r, unknown) else r
            for r, extent in zip(region.region, region.buffer.shape, strict=True)
        )
        region = BufferRegion(region.buffer, ranges_covered)
    ranges = zip(region.region, region.buffer.shape, strict=True)
    return BufferRegion(region.buffer, tuple(_relax(r, extent, loops) for r, extent in ranges))


def _relax(r: Range, extent: Expr, loops: Mapping[Var, int]) -> Range:
    whole = Range(IntImm(0), extent)
    if _mentions(r.extent, loops):
        return whole
    if not _mentions(r.minimum, loops):
        return r
    if not isinstance(r.extent, IntImm):
        return whole
    form = affine(r.minimum)
    inner = tuple(term for term in form.terms if _mentions(term[0], loops))
    span = bounds(type(form)(inner, 0).to_expr(), loops)
    if span is None:
        # Of `(x * 16 + i) // 16`, with `i` below 16, the loop is no part.
        simple = simplify(r.minimum, loops)
        return whole if _mentions(simple, loops) else Range(simple, r.extent)
    outer = tuple(term for term in form.terms if term not in inner)
    minimum = type(form)(outer, form.const + span[0], form.dtype).to_expr()
    return Range(minimum, IntImm(span[1] - span[0] + r.extent.value))


def _mentions(expr: Expr, loops: Mapping[Var, int]) -> bool:
    return any(isinstance(node, Var) and node in loops for node in walk(expr))


def _replaced(expr: Expr, mapping: Mapping[Var, Expr]) -> Expr:
    new = substitute(expr, mapping)
    return expr if new is expr else simplify(new)


def _has_any(r: Range, variables: AbstractSet[Var]) -> bool:
    return any(node in variables for end in (r.minimum, r.extent) for node in walk(end))


def _point(buffer: Buffer, indices: tuple[Expr, ...]) -> BufferRegion:
    return BufferRegion(buffer, tuple(_reach(index) for index in indices))


def _reach(index: Expr) -> Range:
    """Return the range of an index; for a vector, the range between its ends."""
    if isinstance(index, Ramp):
        return Range(index.base, IntImm(index.stride * (index.lanes - 1) + 1))
    return Range(index, _ONE)


def union(a: BufferRegion, b: BufferRegion) -> BufferRegion:
    """Return a region that covers two regions of one buffer."""
    ranges = zip(a.region, b.region, a.buffer.shape, strict=True)
    return BufferRegion(a.buffer, tuple(_union(x, y, extent) for x, y, extent in ranges))


def _union(a: Range, b: Range, extent: Expr) -> Range:
    """Return the hull of two ranges, or the whole dimension if their distance is not constant."""
    if a == b:
        return a
    distance = simplify(BinOp("-", b.minimum, a.minimum))
    match a.extent, b.extent, distance:
        case IntImm(n), IntImm(m), IntImm(d):
            low, high = min(0, d), max(n, d + m)
            minimum = simplify(BinOp("+", a.minimum, IntImm(low))) if low else a.minimum
            return Range(minimum, IntImm(high - low))
        case _:
            return Range(IntImm(0), extent)
