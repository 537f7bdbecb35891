"""The accesses of a block, read from its body; declared regions count where it says too little.

A block that contains loops or blocks is flattened: its accesses are in terms of its own iterators
and of the loops inside of it. Accesses through a pointer (an argument of an opaque call) are known
by the regions that the block around the call declares. Views (`T.match_buffer`) count as accesses
to the viewed buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from compiler.ir.analysis.regions import explicit_regions
from compiler.ir.arith.affine import affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import Extents
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Call,
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
from compiler.ir.core.visit import children, substitute, walk
from compiler.schedule.tree.block_cache import by_identity

# The value of a `T.let` stands for its name in indices; copies of a larger one would pile up.
_MAX_LET_NODES = 32

Mode: TypeAlias = Literal["read", "write"]


@frozen
class BlockAccess:
    """One load or store, its indices in terms of the block's iterators and of inner loops.

    An access to a region has indices with loops of their own; so has a vector.

    Args:
        inner: The loops inside the block around the access, with their extents.
        order: Its position in a run of the block.
        is_certain: Whether it happens in every run, and in every iteration of the inner loops.
        is_fresh: Whether it reads a value that the init of an inner block wrote in the same run.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    inner: Extents
    order: int = 0
    is_certain: bool = True
    is_fresh: bool = False


@frozen
class BlockAccesses:
    """All accesses of a block, init included, in program order, and its outer variables.

    Attributes:
        init_reads: The part of `reads` that the init makes; `init_writes` that of `writes`.
        outside: The variables that the block uses without binding them, such as outer loops.
        hidden: The buffers that it accesses through a pointer, at unknown indices.
    """

    reads: tuple[BlockAccess, ...]
    writes: tuple[BlockAccess, ...]
    init_reads: tuple[BlockAccess, ...]
    init_writes: tuple[BlockAccess, ...]
    outside: frozenset[Var]
    hidden: tuple[str, ...]
    is_leaf: bool

    def read_buffers(self) -> frozenset[Buffer]:
        """Return the buffers that the block loads from."""
        return frozenset(access.buffer for access in self.reads)

    def written_buffers(self) -> frozenset[Buffer]:
        """Return the buffers that the block stores to."""
        return frozenset(access.buffer for access in self.writes)

    def accesses(self, buffer: Buffer) -> tuple[BlockAccess, ...]:
        """Return every access to a buffer."""
        return tuple(a for a in (*self.writes, *self.reads) if a.buffer == buffer)


@by_identity
def facts_of(block: Block) -> BlockAccesses:
    """Return the accesses of a block."""
    collector = _AccessCollector()
    context = _BodyContext(block)
    collector.matches(block.match_buffers, context)
    if block.init is not None:
        collector.stmt(block.init, context)
    init_reads, init_writes = len(collector.reads), len(collector.writes)
    collector.stmt(block.body, context)
    local = collector.local | set(block.alloc_buffers)
    return BlockAccesses(
        _visible(collector.reads, local),
        _visible(collector.writes, local),
        _visible(collector.reads[:init_reads], local),
        _visible(collector.writes[:init_writes], local),
        frozenset(_used(block) - _bound_inside(block)),
        tuple(sorted(collector.hidden - {buffer.name for buffer in local})),
        not any(isinstance(node, For | Block) for node in walk(block) if node is not block),
    )


def _visible(accesses: Iterable[BlockAccess], local: set[Buffer]) -> tuple[BlockAccess, ...]:
    return tuple(access for access in accesses if access.buffer not in local)


@dataclass(frozen=True)
class _BodyContext:
    """The loops, conditions and views around a statement in a block's body."""

    block: Block  # the innermost block around the statement, in the terms of the outermost
    inner: Extents = field(default_factory=dict)
    is_certain: bool = True
    fresh: tuple[tuple[Buffer, tuple[Expr, ...]], ...] = ()


class _AccessCollector:
    def __init__(self) -> None:
        self.reads: list[BlockAccess] = []
        self.writes: list[BlockAccess] = []
        self.local: set[Buffer] = set()
        self.hidden: set[str] = set()
        self._views: dict[Buffer, BufferRegion] = {}
        self._order = 0

    def matches(self, matches: Iterable[MatchBuffer], context: _BodyContext) -> None:
        """Record views, and the reads of the values that locate them."""
        for match in matches:
            for r in match.source.region:
                self._exprs((r.minimum, r.extent), context)
            self._views[match.buffer] = match.source

    def stmt(self, stmt: Stmt, context: _BodyContext) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self._exprs((*indices, value), context)
                self._add("write", buffer, indices, context)
            case Evaluate(value):
                self._exprs((value,), context)
            case Let(var, value, body):
                self._exprs((value,), context)
                self.stmt(_with_value(body, var, value), context)
            case Seq(stmts):
                for child in stmts:
                    self.stmt(child, context)
            case For(var, extent, body):
                self._exprs((extent,), context)
                inner = {**context.inner, var: extent_or_unknown(extent)}
                # A loop of an unknown extent may run no iteration.
                certain = context.is_certain and isinstance(extent, IntImm)
                self.stmt(body, replace(context, inner=inner, is_certain=certain))
            case If(condition, then, otherwise):
                self._exprs((condition,), context)
                maybe = replace(context, is_certain=False)
                self.stmt(then, maybe)
                if otherwise is not None:
                    self.stmt(otherwise, maybe)
            case While(condition, body):
                self._exprs((condition,), context)
                self.stmt(body, replace(context, is_certain=False))
            case BlockRealize():
                self._realize(stmt, context)
            case _:
                raise AssertionError("a block under schedule holds no lowered statement")

    def _realize(self, realize: BlockRealize, context: _BodyContext) -> None:
        self._exprs((*realize.iter_values, realize.predicate), context)
        iter_vars = realize.block.iter_vars
        bindings = {i.var: v for i, v in zip(iter_vars, realize.iter_values, strict=True)}
        bound = substitute(BlockRealize((), TRUE, realize.block), bindings)
        assert isinstance(bound, BlockRealize), "substitution keeps the kind of a statement"
        block = bound.block
        self.local.update(block.alloc_buffers)
        self.matches(block.match_buffers, replace(context, block=block))
        inside = replace(
            context,
            block=block,
            is_certain=context.is_certain and realize.predicate == TRUE,
        )
        if block.init is not None:
            before = len(self.writes)
            self.stmt(block.init, replace(inside, is_certain=False))
            if _starts_inside(realize, context.inner):
                fresh = tuple((a.buffer, a.indices) for a in self.writes[before:])
                inside = replace(inside, fresh=fresh)
        self.stmt(block.body, inside)

    def _exprs(self, exprs: Iterable[Expr], context: _BodyContext) -> None:
        stack = list(exprs)
        while stack:
            expr = stack.pop()
            if isinstance(expr, Load):
                self._load(expr, context)
            elif isinstance(expr, Var) and expr.dtype == "handle":
                self._pointer(expr, context)
            stack.extend(children(expr))  # type: ignore[arg-type]

    def _load(self, load: Load, context: _BodyContext) -> None:
        """Record a read; of a declared box, if the block's author declared one."""
        declared = explicit_regions(context.block, "read")
        box = next((region for region in declared if region.buffer == load.buffer), None)
        if box is None:
            self._add("read", load.buffer, load.indices, context)
        else:
            self._region("read", box, context)

    def _pointer(self, data: Var, context: _BodyContext) -> None:
        """Record a buffer whose storage is passed on: its declared regions count as accesses."""
        buffers = {b for b in self._views if b.data is data}
        source = next((self._views[b].buffer for b in buffers), None)
        wanted = source.data if source is not None else data
        is_declared = False
        modes: tuple[tuple[Mode, tuple[BufferRegion, ...]], ...] = (
            ("read", context.block.reads),
            ("write", context.block.writes),
        )
        for mode, regions in modes:
            for region in regions:
                if region.buffer.data is wanted:
                    is_declared = True
                    self._region(mode, region, context)
        if not is_declared:
            self.hidden.add(data.name)

    def _region(self, mode: Mode, region: BufferRegion, context: _BodyContext) -> None:
        inner = dict(context.inner)
        indices = tuple(_along(r, inner) for r in region.region)
        self._add(mode, region.buffer, indices, replace(context, inner=inner, fresh=()))

    def _add(
        self, mode: Mode, buffer: Buffer, indices: tuple[Expr, ...], context: _BodyContext
    ) -> None:
        while buffer in self._views:
            source = self._views[buffer]
            viewed = _through(source, indices)
            if viewed is None:
                self._region(mode, source, context)
                return
            buffer, indices = source.buffer, viewed
        inner = context.inner
        if any(lanes_of(index) > 1 for index in indices):
            lanes = dict(inner)
            indices = tuple(_along_lanes(index, lanes) for index in indices)
            inner = lanes
        self._order += 1
        access = BlockAccess(
            buffer,
            indices,
            inner,
            self._order,
            context.is_certain,
            mode == "read" and (buffer, indices) in context.fresh,
        )
        (self.reads if mode == "read" else self.writes).append(access)


def _with_value(body: Stmt, var: Var, value: Expr) -> Stmt:
    """Replace the name of a `T.let` by its value if the value may be part of an index."""
    if var.dtype == "handle" or not is_integer(var.dtype):
        return body
    for number, node in enumerate(walk(value)):
        if isinstance(node, Load | Call) or number > _MAX_LET_NODES:
            return body
    return substitute(body, {var: value})


def _along(r: Range, inner: dict[Var, int]) -> Expr:
    """Return an index that runs over a range, with a new loop in `inner`."""
    if r.extent == IntImm(1, dtype_of(r.extent)):
        return r.minimum
    var = Var("r", dtype_of(r.minimum))
    inner[var] = extent_or_unknown(r.extent)
    return var if r.minimum == IntImm(0, dtype_of(r.minimum)) else BinOp("+", r.minimum, var)


def _along_lanes(index: Expr, inner: dict[Var, int]) -> Expr:
    """Return the index of one lane of a vector of indices, with a new loop in `inner`."""
    if not isinstance(index, Ramp):
        return index
    dtype = dtype_of(index.base)
    var = Var("lane", dtype)
    inner[var] = index.lanes
    step: Expr = var if index.stride == 1 else BinOp("*", var, IntImm(index.stride, dtype))
    return BinOp("+", index.base, step)


def _through(source: BufferRegion, indices: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """Return the indices of a view's element in the viewed buffer, if the view is simple."""
    skipped = len(source.region) - len(indices)
    if skipped < 0:
        return None
    minima = [r.minimum for r in source.region]
    moved = (
        index if low == IntImm(0, dtype_of(low)) else BinOp("+", low, index)
        for low, index in zip(minima[skipped:], indices, strict=True)
    )
    return (*minima[:skipped], *moved)


def _starts_inside(realize: BlockRealize, inner: Mapping[Var, int]) -> bool:
    """Return whether each run of the loops `inner` runs the reduction of a block from its start."""
    spatial: set[Var] = set()
    reduce: set[Var] = set()
    for iter_var, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        used = {node for node in walk(value) if isinstance(node, Var)}
        (spatial if iter_var.kind == "spatial" else reduce).update(used)
        form = affine(value)
        if iter_var.kind != "spatial" and (form.const or any(c < 0 for _, c in form.terms)):
            return False
    return reduce <= inner.keys() and spatial.isdisjoint(reduce)


def _used(block: Block) -> set[Var]:
    used = {node for node in walk(block) if isinstance(node, Var) and node.dtype != "handle"}
    for inner in walk(block):
        if isinstance(inner, Block):
            for iter_var in inner.iter_vars:
                used.update(v for v in walk(iter_var.extent) if isinstance(v, Var))
    return used


def _bound_inside(block: Block) -> set[Var]:
    bound: set[Var] = set()
    for node in walk(block):
        if isinstance(node, For | Let):
            bound.add(node.var)
        elif isinstance(node, Block):
            bound.update(i.var for i in node.iter_vars)
            for match in node.match_buffers:
                described = (*match.buffer.strides, match.buffer.elem_offset)
                bound.update(part for part in described if isinstance(part, Var))
    return bound
