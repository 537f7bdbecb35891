"""The rule for spatial blocks that no other rule schedules: vectors inside, threads outside."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.arith.affine import affine
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Load, Store, Var
from compiler.ir.core.visit import walk
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts, BlockPosition, sites
from tuner.space.rules.cpu.contiguous_rows import is_contiguous, schedule_contiguous
from tuner.space.rules.cpu.streams import offer_streams
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_TILE = 64
"""Extent of an inner tile: it offers reuse in the first-level cache, without options that differ
little. Chosen.
"""
MAX_VECTORS = 8
"""Vectors of an inner loop: enough loads in flight; more only lengthen the code. Chosen."""
_OUTER, _TILE, _VECTOR = 0, 3, 6


class SpatialBlocks:
    """Cuts each axis of a spatial block in two, vectorizes the contiguous one, parallelizes tiles.

        for i, j in ...:                for i0, j0 in ...:  # parallel
            B[i, j] = f(A[i, j])   ->       for i1 in ...:
                                                for j1 in ...:  # vectorized
                                                    B[...] = f(A[...])

    If output and input are contiguous along the same axis, tiles gain nothing. The main block of a
    program is then scheduled by `contiguous_rows`. Of the blocks beside others, the other axes stay
    whole, and rows that are no whole number of vectors are fused if all of the memory is
    contiguous. Otherwise they stay whole, and end in shorter vectors.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule every spatial block that no other rule scheduled."""
        phases_by_block = {site.block.name: _phases(site) for site in sites(draft.schedule.func)}
        for name, facts in draft.block_facts().items():
            if name not in draft.scheduled and not facts.is_reduction and facts.axes:
                if draft.knobs and phases_by_block.get(name):
                    _interleave(draft, facts, phases_by_block[name])
                    continue
                _schedule(draft, facts)
                if not draft.name:
                    draft.name = ("spatial",)
                    draft.tags |= {"spatial"}
        return [draft]


def _phases(site: BlockPosition) -> dict[int, int]:
    """Return the axes that select a source by a remainder, with their divisors.

    Along the contiguous axis of the source, the quotient must select: otherwise one phase would
    lie in separate elements.
    """
    if not isinstance(site.block.body, Store):
        return {}
    variables = [iterator.var for iterator in site.block.iter_vars]
    divisors: dict[int, int] = {}
    contiguous: set[int] = set()
    for load in walk(site.block.body.value):
        if not isinstance(load, Load) or not load.indices:
            continue
        divisors |= _divided_axes("%", load.indices, variables)
        contiguous |= _divided_axes("//", load.indices[-1:], variables).keys()
    divisors = {axis: n for axis, n in divisors.items() if 1 < n <= MAX_TILE}
    return divisors if contiguous & divisors.keys() else {}


def _divided_axes(op: str, indices: Sequence[Expr], variables: Sequence[Var]) -> dict[int, int]:
    """Return the axes that indices divide by constants, with these."""
    divisors = {}
    for node in (node for index in indices for node in walk(index)):
        match node:
            case BinOp(divide, position, IntImm(divisor)) if divide == op:
                terms = affine(position).terms
                if len(terms) == 1 and terms[0][0] in variables and terms[0][1] == 1:
                    divisors[variables.index(terms[0][0])] = divisor
            case _:
                pass
    return divisors


def _interleave(draft: SketchBuilder, facts: BlockFacts, phases: dict[int, int]) -> None:
    """Compute one phase after another, so that no remainder is computed at run time."""
    schedule = draft.schedule
    outer: list[LoopRV] = []
    inner: list[LoopRV] = []
    for index, loop in enumerate(draft.loops(facts.name)):
        if index not in phases:
            outer.append(loop)
            continue
        around, phase = schedule.split(loop, [None, phases[index]])
        outer.append(around)
        inner.append(phase)
    schedule.reorder(*outer[:-1], *inner, outer[-1])
    for loop in inner:
        schedule.unroll(loop)
    draft.parallelize(outer[:-1])
    draft.scheduled.add(facts.name)


def _schedule(draft: SketchBuilder, facts: BlockFacts) -> None:
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    if is_contiguous(facts) and not draft.knobs:
        schedule_contiguous(draft, facts)
    elif not _is_ragged(facts, lanes):
        _cut(draft, facts, lanes)
    elif _is_one_row(facts) and facts.points % lanes == 0:
        _cut(draft, _joined(draft, facts), lanes)
    else:
        _run_rows(draft, facts)
    draft.scheduled.add(facts.name)
    offer_streams(draft, facts)


def _is_ragged(facts: BlockFacts, lanes: int) -> bool:
    """Return whether rows that are contiguous everywhere are no whole number of vectors."""
    vector = facts.vector_axis
    if vector is None or facts.axes[vector].extent % lanes == 0:
        return False
    others = [a for i, a in enumerate(facts.axes) if i != vector and a.extent > 1]
    return bool(others) and all(read.strides[vector] in (0, 1) for read in facts.reads)


def _is_one_row(facts: BlockFacts) -> bool:
    return facts.is_affine and all(facts.runs_on(i, i + 1) for i in range(len(facts.axes) - 1))


def _joined(draft: SketchBuilder, facts: BlockFacts) -> BlockFacts:
    """Fuse all loops of a block; return its facts with a single axis."""
    draft.schedule.fuse(*draft.loops(facts.name))
    return facts.flattened()


def _run_rows(draft: SketchBuilder, facts: BlockFacts) -> None:
    """Vectorize whole rows; sample the number of rows in a parallel task."""
    schedule, loops = draft.schedule, draft.loops(facts.name)
    vector = facts.vector_axis
    assert vector is not None, "rows are contiguous"
    first = next(i for i, a in enumerate(facts.axes) if i != vector and a.extent > 1)
    factors, column = draft.tile(loops[first], facts.axes[first].extent, 2, MAX_TILE)
    outer, inner = schedule.split(loops[first], factors)
    other_loops = [loop for index, loop in enumerate(loops) if index not in (first, vector)]
    schedule.reorder(outer, inner, *other_loops, loops[vector])
    schedule.vectorize(loops[vector])
    draft.parallelize([outer])
    no_columns: tuple[int | None, ...] = (None,) * NUM_LEVELS
    cut_columns = tuple(
        {_OUTER: column, _TILE: column + 1}.get(level) for level in range(NUM_LEVELS)
    )
    columns = tuple(cut_columns if index == first else no_columns for index in range(len(loops)))
    remainder_levels = tuple(None if index == first else _TILE for index in range(len(loops)))
    draft.nests.append(TiledNest(facts, columns, remainder_levels, None))


def _vectors(extent: int, lanes: int) -> list[int]:
    """Return the multiples of the vector length that divide an extent, the longest first."""
    return [lanes * n for n in (MAX_VECTORS, 4, 2, 1) if extent % (lanes * n) == 0][:3]


def _ragged_vectors(extent: int, lanes: int) -> list[int]:
    """Return vector lengths for an extent without a usable divisor, such as a large prime."""
    if any(extent % n == 0 for n in range(max(2, lanes // 2), MAX_VECTORS * lanes + 1)):
        return []
    return [lanes * n for n in (4, 2, 1) if lanes * n < extent]


def _cut(draft: SketchBuilder, facts: BlockFacts, lanes: int) -> None:
    schedule = draft.schedule
    vector = facts.vector_axis
    outer: list[LoopRV] = []
    inner: list[LoopRV] = []
    columns: list[tuple[int | None, ...]] = []
    remainder_levels: list[int | None] = []
    for index, (axis, loop) in enumerate(zip(facts.axes, draft.loops(facts.name), strict=True)):
        is_cut = axis.extent > 1 and (vector is None or index == vector)
        if not is_cut:
            outer.append(loop)
            remainder_levels.append(_OUTER)
            columns.append((None,) * NUM_LEVELS)
            continue
        sizes: list[int] = []
        if index == vector:
            sizes = _vectors(axis.extent, lanes) or _ragged_vectors(axis.extent, lanes)
        if sizes:
            size, first = draft.cut(axis.extent, sizes)
            parts = schedule.split(loop, [None, size])
        else:
            limit = MAX_VECTORS * lanes if index == vector else MAX_TILE
            factors, first = draft.tile(loop, axis.extent, 2, limit)
            parts = schedule.split(loop, factors)
        outer.append(parts[0])
        inner.append(parts[1])
        axis_columns = {_OUTER: first, (_VECTOR if index == vector else _TILE): first + 1}
        columns.append(tuple(axis_columns.get(level) for level in range(NUM_LEVELS)))
        remainder_levels.append(None)
    schedule.reorder(*outer, *inner)
    is_cut = vector is not None and facts.axes[vector].extent > 1
    if is_cut:
        schedule.vectorize(inner[-1])
    draft.parallelize(outer)
    draft.nests.append(
        TiledNest(facts, tuple(columns), tuple(remainder_levels), vector if is_cut else None)
    )
