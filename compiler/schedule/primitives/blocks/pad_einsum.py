"""Pad the iterators of a block to multiples of given sizes: `pad_einsum`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.ir.analysis.reducer import ReductionForm, reduction_of
from compiler.ir.arith.affine import affine
from compiler.ir.arith.iter_map import variables
from compiler.ir.arith.simplify import equal, simplify
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    For,
    IntImm,
    IterVar,
    Load,
    Range,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.legality.whole_nest import require_whole_nest
from compiler.schedule.tree.tree import (
    allocate_in,
    block_path,
    fresh_block_name,
    fresh_buffer_name,
    replace_at,
)


def pad_einsum(func: PrimFunc, block: str, padding: Sequence[int]) -> PrimFunc:
    """Pad the ranges of a block's iterators to multiples of some sizes, in padded buffers.

    Copies padded with zeros go before the block, and a copy of the result after it.

    Args:
        padding: For each iterator, the number that divides its new extent.

    Requires:
        There is one positive number for each iterator. The block is complete or a reduction. It
        accesses each buffer at one element, indexed by iterators themselves, or by zero in a
        dimension of extent one. An index of a read may also be a sum of multiples of iterators,
        such as that of a window, if padded iterators keep it inside of the buffer. If a padded
        iterator alone indexes a dimension, their extents are the same. A padded iterator is bound
        to a separate loop. If it is a reduction iterator, the block is a sum, to which padding adds
        zero; if not, it indexes the output. The block writes all of its buffer, and is alone below
        its outermost loop.

    Rewrites:
        for i in range(n):               for i in range(m):
            C[i] = A[i] * 2     ->           A_pad[i] = if_then_else(i < n, A[i], 0)
                                         for i in range(m):
                                             C_pad[i] = A_pad[i] * 2
                                         for i in range(n):
                                             C[i] = C_pad[i]

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("pad_einsum", func)
    scope, site = scope_of_block(func, block, refuse)
    _require_padding(site, padding, refuse)
    padded = _padded_extents(site, padding)
    _require_einsum(site, padded, refuse)
    if not padded:
        return func
    _require_own_loops(site, padded, refuse)
    _require_vanishing(site, padded, refuse)
    path = (*scope.path[:-1], *require_whole_nest(scope, site))

    copies = [_Copy.of(func, region, padded) for region in (*site.block.reads, *site.block.writes)]
    copies = [copy for copy in copies if copy.is_needed]
    for copy in copies:
        _require_same_sizes(site, copy, padded, refuse)
    written = {region.buffer for region in site.block.writes}
    before = [copy.into(func) for copy in copies if copy.buffer not in written]
    after = [copy.back(func) for copy in copies if copy.buffer in written]
    body = replace_buffers(
        _with_extents(site, padded), {copy.buffer: copy.padded for copy in copies}
    )
    func = replace_at(func, path, seq(*before, body, *after))
    for copy in copies:
        func = allocate_in(func, block_path(func, scope.realize.block.name, refuse), copy.padded)
    return func


# Requirements


def _require_padding(site: PlacedBlock, padding: Sequence[int], refuse: Refuse) -> None:
    count = len(site.block.iter_vars)
    if len(padding) != count or any(size < 1 for size in padding):
        reason = f"block {site.name} takes {count} positive numbers, one an iterator, got"
        raise refuse(f"{reason} {list(padding)}", site.realize, "invalid_argument")


def _require_einsum(site: PlacedBlock, padded: Mapping[Var, Expr], refuse: Refuse) -> None:
    """Refuse unless a block accesses each buffer at one element, indexed by iterators."""
    if isinstance(site.kind, Unclassified):
        raise refuse(site.kind.reason, site.realize, "block_kind")
    if site.kind not in ("complete", "reduction"):
        reason = f"block {site.name} reads what it writes without having initialised it"
        raise refuse(reason, site.realize, "block_kind")
    if site.block.alloc_buffers or site.block.match_buffers or not site.facts.is_leaf:
        reason = f"block {site.name} contains loops, buffers or views"
        raise refuse(reason, site.realize, "structure")
    regions = (*site.block.reads, *site.block.writes)
    if len({region.buffer for region in regions}) < len(regions):
        raise refuse(
            f"block {site.name} accesses a buffer at two places", site.realize, "not_proved"
        )
    for region in regions:
        for r, size in zip(region.region, region.buffer.shape, strict=True):
            is_alone = isinstance(r.minimum, Var) or _is_first(r.minimum, size)
            is_read = region not in site.block.writes
            if r.extent != IntImm(1, dtype_of(r.extent)) or not (
                is_alone or (is_read and _is_inside(r.minimum, size, site, padded))
            ):
                reason = f"block {site.name} does not index {region.buffer.name} by iterators alone"
                raise refuse(reason, site.realize, "not_proved")


def _is_first(index: Expr, size: Expr) -> bool:
    """Return whether an index is zero, in a dimension of extent one."""
    values = [part.value for part in (index, size) if isinstance(part, IntImm)]
    return values == [0, 1]


def _is_inside(index: Expr, size: Expr, site: PlacedBlock, padded: Mapping[Var, Expr]) -> bool:
    """Return whether a sum of multiples of iterators is in a dimension, padding included."""
    form = affine(index)
    extents = {i.var: padded.get(i.var, i.extent) for i in site.block.iter_vars}
    most = form.const
    for atom, scale in form.terms:
        extent = extents.get(atom) if isinstance(atom, Var) else None
        if scale < 0 or not isinstance(extent, IntImm):
            return False
        most += scale * (extent.value - 1)
    return form.const >= 0 and isinstance(size, IntImm) and most < size.value


def _padded_extents(site: PlacedBlock, padding: Sequence[int]) -> dict[Var, Expr]:
    """Return the new extents of the iterators that are padded."""
    padded_extents: dict[Var, Expr] = {}
    for iter_var, size in zip(site.block.iter_vars, padding, strict=True):
        dtype = dtype_of(iter_var.extent)
        unit = IntImm(size, dtype)
        raised_extent = BinOp("+", iter_var.extent, IntImm(size - 1, dtype))
        padded = simplify(BinOp("*", BinOp("//", raised_extent, unit), unit))
        if not equal(padded, iter_var.extent):
            padded_extents[iter_var.var] = padded
    return padded_extents


def _require_own_loops(site: PlacedBlock, padded: Mapping[Var, Expr], refuse: Refuse) -> None:
    for iter_var, value in zip(site.block.iter_vars, site.realize.iter_values, strict=True):
        if iter_var.var not in padded:
            continue
        loop = next((loop for loop in site.loops if loop.var is value), None)
        users = sum(value in variables(other) for other in site.realize.iter_values)
        in_predicate = value in variables(site.realize.predicate)
        if loop is None or users > 1 or in_predicate or not equal(loop.extent, iter_var.extent):
            reason = f"iterator {iter_var.var.name} of block {site.name} is not just a loop over"
            raise refuse(f"{reason} its whole range", site.realize, "not_proved")


def _require_vanishing(site: PlacedBlock, padded: Mapping[Var, Expr], refuse: Refuse) -> None:
    """Refuse if padding could add to an element something other than zero."""
    told = {r.minimum for region in site.block.writes for r in region.region}
    for iter_var in site.block.iter_vars:
        if iter_var.kind == "spatial" and iter_var.var in padded and iter_var.var not in told:
            reason = f"padding of {iter_var.var.name} repeats stores of block {site.name}: it does"
            raise refuse(
                f"{reason} not index the elements that are written", site.realize, "not_proved"
            )
    over = [i.var for i in site.block.iter_vars if i.kind == "reduce" and i.var in padded]
    if not over:
        return
    reduction = reduction_of(site.block)
    if isinstance(reduction, str):
        raise refuse(f"block {site.name} {reduction}", site.realize, "block_kind")
    for var in over:
        if not _is_sum(reduction) or not all(_vanishes(v, var) for v in reduction.values):
            reason = f"padding of {var.name} is not known to add nothing to the reduction of block"
            raise refuse(f"{reason} {site.name}", site.realize, "not_proved")


def _is_sum(reduction: ReductionForm) -> bool:
    return all(isinstance(r, BinOp) and r.op == "+" for r in reduction.reducer.results)


def _vanishes(value: Expr, var: Var) -> bool:
    """Return whether a value is zero if each load that `var` indexes gives zero."""
    match value:
        case Load(_, indices):
            return var in indices  # in a sum, it reads elements of the buffer, not padding
        case Cast(_, inner):
            return _vanishes(inner, var)
        case BinOp("*", lhs, rhs):
            # Zero times infinity is not zero, so both factors must be padding.
            sides = [_vanishes(side, var) for side in (lhs, rhs)]
            return all(sides) or (any(sides) and not is_float(dtype_of(value)))
        case BinOp("+" | "-", lhs, rhs):
            return _vanishes(lhs, var) and _vanishes(rhs, var)
        case _:
            return False


def _require_same_sizes(
    site: PlacedBlock, copy: _Copy, padded: Mapping[Var, Expr], refuse: Refuse
) -> None:
    """Refuse if a buffer has elements that the block omits, but that would become padding."""
    extents = {i.var: i.extent for i in site.block.iter_vars}
    is_written = site.writes(copy.buffer)
    for r, size in zip(copy.region.region, copy.buffer.shape, strict=True):
        index = r.minimum
        if not isinstance(index, Var) or (index not in padded and not is_written):
            continue
        if not equal(extents[index], size):
            reason = f"block {site.name} does not access all of {copy.buffer.name}, which would be"
            raise refuse(f"{reason} padded", site.realize, "not_proved")


# The copies


@dataclass(frozen=True)
class _Copy:
    """A buffer, the region of it that the block accesses, and its padded copy."""

    buffer: Buffer
    region: BufferRegion
    padded: Buffer

    @classmethod
    def of(cls, func: PrimFunc, region: BufferRegion, padded: Mapping[Var, Expr]) -> _Copy:
        old = region.buffer
        shape = tuple(
            padded.get(r.minimum, size) if isinstance(r.minimum, Var) else size
            for r, size in zip(region.region, old.shape, strict=True)
        )
        name = fresh_buffer_name(func, f"{old.name}_pad")
        return cls(old, region, Buffer(Var(name, "handle"), shape, old.dtype, old.scope))

    @property
    def is_needed(self) -> bool:
        """Return whether the copy is larger than the buffer."""
        return self.padded.shape != self.buffer.shape

    def into(self, func: PrimFunc) -> Stmt:
        """Return the loops that copy the buffer and pad it with zeros."""
        iter_vars = _iterators(self.padded.shape)
        indices = tuple(i.var for i in iter_vars)
        sizes = zip(indices, self.buffer.shape, self.padded.shape, strict=True)
        inside = tuple(Compare("<", v, size) for v, size, new in sizes if not equal(size, new))
        dtype = self.buffer.dtype
        zero: Expr = FloatImm(0.0, dtype) if is_float(dtype) else IntImm(0, dtype)
        value = Conditional(conjunction(inside), Load(self.buffer, indices), zero)
        return _nest(func, self, iter_vars, self.buffer, Store(self.padded, indices, value))

    def back(self, func: PrimFunc) -> Stmt:
        """Return the loops that copy everything but the padding back to the buffer."""
        iter_vars = _iterators(self.buffer.shape)
        indices = tuple(i.var for i in iter_vars)
        store = Store(self.buffer, indices, Load(self.padded, indices))
        return _nest(func, self, iter_vars, self.padded, store)


def _iterators(shape: Sequence[Expr]) -> tuple[IterVar, ...]:
    return tuple(
        IterVar(Var(f"v{n}", dtype_of(size)), size, "spatial") for n, size in enumerate(shape)
    )


def _nest(
    func: PrimFunc, copy: _Copy, iter_vars: tuple[IterVar, ...], source: Buffer, store: Store
) -> Stmt:
    point = tuple(Range(i.var, IntImm(1, dtype_of(i.var))) for i in iter_vars)
    name = fresh_block_name(func, copy.padded.name)
    reads, writes = (BufferRegion(source, point),), (BufferRegion(store.buffer, point),)
    block = Block(name, iter_vars, reads, writes, store)
    loops = [Var(f"i{n}", dtype_of(i.var)) for n, i in enumerate(iter_vars)]
    nest: Stmt = BlockRealize(tuple(loops), TRUE, block)
    for var, iter_var in reversed(list(zip(loops, iter_vars, strict=True))):
        nest = For(var, iter_var.extent, nest)
    return nest


def _with_extents(site: PlacedBlock, padded: Mapping[Var, Expr]) -> Stmt:
    """Return the loops and the block over the padded ranges."""
    old = site.block
    iter_vars = tuple(replace(i, extent=padded.get(i.var, i.extent)) for i in old.iter_vars)
    nest: Stmt = replace(site.realize, block=replace(old, iter_vars=iter_vars))
    longer = {
        value: padded[i.var]
        for i, value in zip(old.iter_vars, site.realize.iter_values, strict=True)
        if i.var in padded
    }
    for loop in reversed(site.loops):
        nest = replace(loop, extent=longer.get(loop.var, loop.extent), body=nest)
    return nest
