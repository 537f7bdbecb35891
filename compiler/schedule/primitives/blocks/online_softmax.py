"""Compute a softmax and the sum that it weights in one pass over blocks: `online_softmax`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import variables_of
from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    ArithOp,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    For,
    IntImm,
    IterVar,
    Load,
    Select,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, transform
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.index.region import Span
from compiler.schedule.legality.coverage import is_finished_for, read_box
from compiler.schedule.legality.same_threads import require_no_shared_work
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.primitives.blocks.decompose_reduction import separate_init
from compiler.schedule.rewrite.init_nest import element_nest
from compiler.schedule.rewrite.placement import clip, require_no_vector_around
from compiler.schedule.rewrite.row_blocks import RowBlocks
from compiler.schedule.rewrite.softmax_chain import (
    RowReduction,
    SoftmaxChain,
    find_softmax_chain,
    undivided,
)
from compiler.schedule.tree.tree import (
    allocate_in,
    block_path,
    fresh_block_name,
    fresh_buffer_name,
    loop_at,
    loop_path,
    replace_at,
)


def online_softmax(func: PrimFunc, block: str, loop: Var) -> tuple[PrimFunc, str, tuple[str, ...]]:
    """Compute a softmax with the sum that it weights, in one pass over blocks of its rows.

    A loop over blocks of the sum keeps the maximum, the total and the weighted sum of the blocks so
    far. If a block raises the maximum from `m` to `n`, it multiplies both sums by `exp(m - n)`; in
    the end, the weighted sum is divided by the total (Milakov and Gimelshein, "Online normalizer
    calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). The result is equal but for
    rounding, and no row is stored whole. `exp(x)` is computed as `exp2(x * log2(e))`.

    Args:
        block: The weighted sum.
        loop: Its loop over blocks of the summed axis.

    Requires:
        The block sums products of a weight and another value, over one axis. The weights are the
        softmax of a row: powers of a score minus the largest score of the row, divided by the total
        of the row's powers. The maxima, powers, totals and weights have a block each, which stores
        at its iterators and reduces whole rows. No other block reads them, and none is an output.
        The loop is serial and the outermost one that binds the summed axis; each iteration takes
        the next elements of it. The scores are finished before the loop. No loop around it is
        vectorized.

    Rewrites:
        for i, j: M[i] max= S[i, j]                for i: M[i] = least; L[i] = 0
        for i, j: P[i, j] = exp(S[i, j] - M[i])    for i, c: O[i, c] = 0
        for i, j: L[i] += P[i, j]                  for t:
        for i, j: W[i, j] = P[i, j] / L[i]    ->       for i, j: M_tile[i, t] max= S[i, t * b + j]
        for t, i, c, j:                                for i: F[i, t] = exp(M[i] - new M[i])
            O[i, c] += W[i, ..] * V[.., c]             for i: M[i] max= M_tile[i, t]
                                                       for i, j: P[i, ..] = exp(S[i, ..] - M[i])
                                                       for i, j: L_tile[i, t] += P[i, t * b + j]
                                                       for i: L[i] = L[i] * F[i, t] + L_tile[i, t]
                                                       for i, j: W[i, ..] = P[i, ..]
                                                       for i, c: O[i, c] *= F[i, t]
                                                       for i, c, j: O[i, c] += W[i, ..] * V[.., c]
                                                   for i, c: O[i, c] /= L[i]

    Returns:
        The program, the name of the block that adds to the sum, and the names of the new blocks in
        program order: `O_init`, `M_init`, `L_init`, `M_tile`, `F`, `L_tile`, and those that scale
        and divide `O`.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("online_softmax", func)
    scope, sink = scope_of_block(func, block, refuse)
    path = loop_path(func, loop, refuse)
    target = loop_at(path)
    if not sink.is_under(target):
        raise refuse(f"loop {loop.name} is not around block {block}", target, "structure")
    if target.kind != "serial":
        reason = f"loop {loop.name} is {target.kind}: only a serial one keeps running sums"
        raise refuse(reason, target, "loop_kind")
    require_no_vector_around(path, refuse)
    require_no_shared_work(path, refuse)
    chain = find_softmax_chain(scope, sink)
    blocks = _blocks_of(scope, chain, target)
    new, update, names = _SoftmaxRewriter(scope, chain, blocks).run()
    _require_finished_scores(new, chain, names[3], refuse)
    return new, update, names


def _blocks_of(scope: BlockScope, chain: SoftmaxChain, loop: For) -> RowBlocks:
    """Return the part of the softmax that the sum reads in one iteration of a loop, or refuse."""
    sink = chain.sink.site
    inside = {inner.var for inner in sink.loops_inside(loop)}
    read = next(access for access in sink.facts.reads if access.buffer == chain.weight.buffer)
    box = read_box(sink, read, set(sink.extents) - inside)
    along, rows = box[chain.axis], (*box[: chain.axis], *box[chain.axis + 1 :])
    spans = tuple(map(clip, chain.maximum.rows, rows))
    size = extent_or_unknown(chain.sink.along.extent)
    count = extent_or_unknown(loop.extent)
    if along is None or not _is_next(along, loop) or count * along.extent < size:
        reason = f"an iteration of loop {loop.var.name} does not take the next elements of"
        raise scope.refuse(f"{reason} {chain.sink.along.var.name}", loop, "structure")
    if any(loop.var in variables_of(span.low) for span in spans):
        reason = f"loop {loop.var.name} binds a spatial iterator of block {sink.name}, too"
        raise scope.refuse(reason, loop, "block_kind")
    return RowBlocks(loop, sink.loops, spans, along, chain.axis, chain.sink.along.extent)


def _is_next(along: Span, loop: For) -> bool:
    """Return whether a span begins where that of the last iteration ended, the first one at 0."""
    steps = ((loop.var, along.extent),)
    is_first = loop.extent == IntImm(1, dtype_of(loop.extent)) and not along.low.terms
    return not along.low.const and (is_first or along.low.terms == steps)


def _require_finished_scores(
    func: PrimFunc, chain: SoftmaxChain, tile: str, refuse: Refuse
) -> None:
    """Refuse if a block of scores may not be finished where the loop reads it."""
    inputs = chain.inputs()
    scope, _ = scope_of_block(func, tile, refuse)
    for site in (site for site in scope.sites if site.name in (tile, chain.powers.name)):
        for other in scope.producers(site):
            if not other.facts.written_buffers() & inputs:
                continue
            is_before = scope.position(other) < scope.position(site)
            if not is_before or not is_finished_for(other, site):
                reason = f"block {other.name} is not proved to have finished what the loop reads"
                raise refuse(reason, chain.sink.site.realize, "dependence")


@dataclass(frozen=True)
class _SoftmaxRewriter:
    """Puts the blocks of a softmax into the loop over blocks of a weighted sum."""

    scope: BlockScope
    chain: SoftmaxChain
    blocks: RowBlocks

    def run(self) -> tuple[PrimFunc, str, tuple[str, ...]]:
        """Return the new program, the name of the update, and those of the new blocks."""
        chain, scope, sink = self.chain, self.scope, self.chain.sink.site
        func, init, update = separate_init(
            scope.func, sink.name, self.blocks.loop.var, scope.refuse
        )
        maximum, total = chain.maximum, chain.total
        highest = self._buffer(f"{maximum.target.buffer.name}_tile", maximum)
        partial = self._buffer(f"{total.target.buffer.name}_tile", total)
        factors = self._buffer(f"{chain.powers.name}_factor", maximum)
        names = [
            fresh_block_name(func, name)
            for name in (
                f"{maximum.site.name}_init",
                f"{total.site.name}_init",
                f"{maximum.site.name}_tile",
                f"{chain.powers.name}_factor",
                f"{total.site.name}_tile",
                f"{sink.name}_scale",
                f"{sink.name}_divide",
            )
        ]
        maximum_init, total_init, maximum_tile, factor, total_tile, scale, divide = names
        before = [self._start(maximum_init, maximum), self._start(total_init, total)]
        inside = [
            self._tile(maximum_tile, maximum, highest),
            self._factors(factor, factors, highest),
            self._running_maximum(highest),
            self._powers(),
            self._tile(total_tile, total, partial),
            self._running_total(factors, partial),
            self._weights(),
            self._scaled_sum(scale, factors),
        ]
        for site in chain.softmax:
            func = replace_at(func, block_path(func, site.name, scope.refuse), None)
        path = loop_path(func, self.blocks.loop.var, scope.refuse)
        loop = loop_at(path)
        body = replace(loop, body=seq(*inside, loop.body))
        func = replace_at(func, path, seq(*before, body, self._divided_sum(divide)))
        for buffer in (highest, partial, factors):
            at = block_path(func, scope.realize.block.name, scope.refuse)
            func = allocate_in(func, at, buffer)
        new = (init, maximum_init, total_init, maximum_tile, factor, total_tile, scale, divide)
        return func, update, new

    def _buffer(self, name: str, reduction: RowReduction) -> Buffer:
        """Return a buffer with one element for each row and iteration of the loop."""
        like = reduction.target.buffer
        shape = (*like.shape, self.blocks.loop.extent)
        unique_name = fresh_buffer_name(self.scope.func, name)
        return Buffer(Var(unique_name, "handle"), shape, like.dtype, like.scope)

    # --- blocks over rows -----------------------------------------------------------------------

    def _start(self, name: str, reduction: RowReduction) -> Stmt:
        iterators, row = _fresh_rows(reduction)
        store = Store(reduction.target.buffer, row, reduction.form.identity[0])
        return self.blocks.of_rows(Block(name, iterators, (), (), store))

    def _tile(self, name: str, reduction: RowReduction, result: Buffer) -> Stmt:
        """Return the reduction of a block of each row."""
        iterators, row = _fresh_rows(reduction)
        step = self.blocks.step("spatial")
        old = reduction.along.var
        inner = IterVar(
            Var(old.name, old.dtype), IntImm(self.blocks.along.extent, dtype_of(old)), "reduce"
        )
        renamed = {i.var: new for i, new in zip(reduction.rows, row, strict=True)}
        element = self.blocks.element(step.var, inner.var)
        value = substitute(reduction.value, {**renamed, old: element})
        target = Load(result, (*row, step.var))
        (combined,) = reduction.form.reducer((target,), (value,))
        init = Store(result, target.indices, reduction.form.identity[0])
        body = Store(result, target.indices, combined)
        return self.blocks.of_tiles(Block(name, (*iterators, step, inner), (), (), body, init))

    def _factors(self, name: str, factors: Buffer, highest: Buffer) -> Stmt:
        """Return the factors from the old maxima to the new ones, which are not yet stored."""
        iterators, row = _fresh_rows(self.chain.maximum)
        step = self.blocks.step("spatial")
        old = Load(self.chain.maximum.target.buffer, row)
        new = BinOp("max", old, Load(highest, (*row, step.var)))
        power = _exponential(BinOp("-", old, self._finite(new)), factors.dtype)
        store = Store(factors, (*row, step.var), power)
        return self.blocks.of_rows(Block(name, (*iterators, step), (), (), store))

    def _running_maximum(self, highest: Buffer) -> Stmt:
        iterators, row = _fresh_rows(self.chain.maximum)
        step = self.blocks.step("reduce")
        old = Load(self.chain.maximum.target.buffer, row)
        store = Store(old.buffer, row, BinOp("max", old, Load(highest, (*row, step.var))))
        name = self.chain.maximum.site.name
        return self.blocks.of_rows(Block(name, (*iterators, step), (), (), store))

    def _running_total(self, factors: Buffer, partial: Buffer) -> Stmt:
        iterators, row = _fresh_rows(self.chain.total)
        step = self.blocks.step("reduce")
        old = Load(self.chain.total.target.buffer, row)
        at = (*row, step.var)
        scaled = BinOp("*", old, _converted(Load(factors, at), old.buffer.dtype))
        store = Store(old.buffer, row, BinOp("+", scaled, Load(partial, at)))
        name = self.chain.total.site.name
        return self.blocks.of_rows(Block(name, (*iterators, step), (), (), store))

    # --- blocks over elements -------------------------------------------------------------------

    def _powers(self) -> Stmt:
        block = self.chain.powers.block
        store = block.body
        assert isinstance(store, Store), "the block was matched"
        score, maximum = self.chain.exponent
        power = _exponential(BinOp("-", score, self._finite(maximum)), store.buffer.dtype)
        body = Store(store.buffer, store.indices, power)
        return self.blocks.of_elements(replace(block, body=body), store.indices)

    def _weights(self) -> Stmt:
        block = self.chain.weights.block
        store = block.body
        assert isinstance(store, Store), "the block was matched"
        body = Store(store.buffer, store.indices, undivided(self.chain))
        return self.blocks.of_elements(replace(block, body=body), store.indices)

    def _finite(self, maximum: Expr) -> Expr:
        """Return a maximum, or zero if all scores so far are -inf: their powers are then zero."""
        start = self.chain.maximum.form.identity[0]
        if not (isinstance(start, FloatImm) and start.value == float("-inf")):
            return maximum
        return Select(Compare("==", maximum, start), FloatImm(0.0, start.dtype), maximum)

    # --- the weighted sum -----------------------------------------------------------------------

    def _scaled_sum(self, name: str, factors: Buffer) -> Stmt:
        """Return the product of the sums so far and the factors of their rows."""
        step = self.blocks.step("reduce")
        nest = self._for_sums(
            name, "*", Load(factors, (*self.chain.row_of_sum, step.var)), "_scale"
        )

        def with_step(stmt: Stmt) -> Stmt | None:
            if not isinstance(stmt, BlockRealize):
                return None
            block = replace(stmt.block, iter_vars=(*stmt.block.iter_vars, step))
            values = (*stmt.iter_values, self.blocks.loop.var)
            return BlockRealize(values, stmt.predicate, block)

        return transform(nest, on_stmt=with_step)

    def _divided_sum(self, name: str) -> Stmt:
        total = Load(self.chain.total.target.buffer, self.chain.row_of_sum)
        return self._for_sums(name, "/", total, "_divide")

    def _for_sums(self, name: str, op: ArithOp, operand: Load, suffix: str) -> Stmt:
        """Return loops around a block that replaces each sum by one with an operand."""
        sink, target = self.chain.sink.site, self.chain.sink.target
        value = BinOp(op, target, _converted(operand, target.buffer.dtype))
        loops = (self.blocks.loop, *sink.loops_inside(self.blocks.loop))
        store = Store(target.buffer, target.indices, value)
        return element_nest(
            sink.realize,
            loops,
            name,
            sink.extents,
            self.scope.refuse,
            statement=store,
            loop_suffix=suffix,
        )


def _fresh_rows(reduction: RowReduction) -> tuple[tuple[IterVar, ...], tuple[Var, ...]]:
    """Return new iterators over the rows of a reduction, and their variables."""
    iterators = tuple(replace(i, var=Var(i.var.name, i.var.dtype)) for i in reduction.rows)
    return iterators, tuple(i.var for i in iterators)


def _exponential(exponent: Expr, dtype: DType) -> Expr:
    """Return the exponential of a number as a power of two, which hardware computes faster."""
    return Call("exp2", (BinOp("*", exponent, FloatImm(math.log2(math.e), dtype)),), dtype)


def _converted(expr: Load, dtype: DType) -> Expr:
    return expr if expr.buffer.dtype == dtype else Cast(dtype, expr)
