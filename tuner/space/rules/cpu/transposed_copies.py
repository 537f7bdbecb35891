"""The rule for blocks that read along one axis and write along another, such as transposes."""

from __future__ import annotations

from compiler.backends.cpu.codegen.emitters.stores import STREAMS
from compiler.ir.core.nodes import BlockRealize
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.operand_roles import dimension
from tuner.space.analysis.transposed_axes import transposed_axes
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import LINE_BYTES, NUM_LEVELS, TiledNest

MAX_COLUMNS = 16
"""Rows of a tile. Its columns are written as contiguous elements: 16 floats are a cache line."""
LINES = (8, 16, 4, 32)
"""Contiguous cache lines that a buffered tile writes, in the order of the knob. Chosen."""
_OUTER, _BLOCK, _REGISTERS = 0, 3, 6


class TransposedCopies:
    """Tiles these blocks so that registers transpose, and whole cache lines are read and written.

        for i, j in ...:             for j0, i0 in ...:  # parallel
            B[i, j] = A[j, i]   ->       for j1, i1 in ...:
                                             for j2 in range(16):  # unrolled
                                                 for i2 in range(8):  # vectorized
                                                     B[...] = A[...]

    The blocks of `i0` are as long as a cache line. A result that is too large for the caches is
    written with non-temporal stores, from a tile that is transposed in a buffer first. Each line is
    then written at once. Otherwise half of a line occupies one of the few write-combining buffers
    of the CPU until the other half follows. If it is evicted before, for instance by another thread
    of the core, the stores take four times as long. A buffered tile also suits rows that are no
    whole number of vectors, because its own rows are.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule each transposed block; fork if a buffered tile may be faster."""
        transposed = _transposed(draft)
        drafts = []
        if any(_gains_aside(draft, facts) for facts in transposed):
            aside = draft.fork("aside")
            try:
                _run(aside, transposed, is_aside=True)
                drafts.append(aside)
            except ScheduleError:
                pass  # tiles in registers need no buffer
        if transposed and not draft.name:
            draft.name = ("transposed",)
        _run(draft, transposed, is_aside=False)
        return [*drafts, draft]


def _transposed(draft: SketchBuilder) -> list[BlockFacts]:
    all_facts = draft.block_facts().values()
    return [
        facts for facts in all_facts if facts.name not in draft.scheduled and transposed_axes(facts)
    ]


def _is_large(draft: SketchBuilder, facts: BlockFacts) -> bool:
    """Return whether a block moves more than half of the size of the last-level cache."""
    moved = facts.write.size_bytes + sum(read.size_bytes for read in facts.reads)
    return 2 * moved > draft.cpu.l3_bytes


def _gains_aside(draft: SketchBuilder, facts: BlockFacts) -> bool:
    """Return whether a tensor is large, or its rows or columns are no whole number of vectors."""
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    is_ragged = any(facts.axes[axis].extent % lanes for axis in transposed_axes(facts) or ())
    is_whole = all(dimension(facts.write, i) is not None for i in range(len(facts.axes)))
    return is_whole and (is_ragged or _is_large(draft, facts))


def _run(draft: SketchBuilder, blocks: list[BlockFacts], *, is_aside: bool) -> None:
    for facts in blocks:
        axes = transposed_axes(facts)
        assert axes is not None, "they are transposed"
        if is_aside and _gains_aside(draft, facts):
            _schedule_aside(draft, facts, *axes)
        else:
            _schedule(draft, facts, *axes)
        draft.scheduled.add(facts.name)
        draft.tags |= {"spatial"}


def _schedule(draft: SketchBuilder, facts: BlockFacts, read: int, written: int) -> None:
    schedule = draft.schedule
    loops = draft.loops(facts.name)
    extent, item_bytes = facts.axes[read].extent, facts.write.item_bytes
    lanes = _divisor(extent, max(1, draft.cpu.vector_bits // (8 * item_bytes)))
    line = _divisor(extent // lanes, max(1, LINE_BYTES // item_bytes // lanes))
    i0, i1, i2 = schedule.split(loops[read], [None, line, lanes])
    factors, first = draft.tile(loops[written], facts.axes[written].extent, 3, MAX_COLUMNS)
    j0, j1, j2 = schedule.split(loops[written], factors)
    around: list[LoopRV] = [
        *(loop for index, loop in enumerate(loops) if index not in (read, written)),
        j0,
        i0,
    ]
    schedule.reorder(*around, j1, i1, j2, i2)
    schedule.unroll(j2)
    schedule.vectorize(i2)
    draft.parallelize(around)
    columns: list[tuple[int | None, ...]] = [(None,) * NUM_LEVELS for _ in facts.axes]
    written_columns = {_OUTER: first, _BLOCK: first + 1, _REGISTERS: first + 2}
    columns[written] = tuple(written_columns.get(level) for level in range(NUM_LEVELS))
    remainder_levels = [_OUTER if index != written else None for index in range(len(facts.axes))]
    remainder_levels[read] = _OUTER
    draft.nests.append(TiledNest(facts, tuple(columns), tuple(remainder_levels), None))


def _schedule_aside(draft: SketchBuilder, facts: BlockFacts, read: int, written: int) -> None:
    """Transpose tiles as wide as a cache line into a buffer, and store its rows."""
    schedule, item_bytes = draft.schedule, facts.write.item_bytes
    block = schedule.get_block(facts.name)
    copy = schedule.cache_write(block, 0, "global")
    across, along = dimension(facts.write, read), dimension(facts.write, written)
    assert across is not None, "rows of the tile are a dimension"
    assert along is not None, "columns of the tile are a dimension"
    loops = draft.loops(copy)
    line = max(1, LINE_BYTES // item_bytes)
    lanes = max(1, draft.cpu.vector_bits // (8 * item_bytes))
    extent = facts.axes[written].extent
    sizes = dict.fromkeys(min(extent, line * lines) for lines in LINES)
    size, first = draft.cut(extent, list(sizes))
    i0, i1 = schedule.split(loops[across], [None, line])
    j0, j1 = schedule.split(loops[along], [None, size])
    other_loops = [loop for index, loop in enumerate(loops) if index not in (across, along)]
    schedule.reorder(*other_loops, j0, i0, i1, j1)
    schedule.vectorize(j1)
    schedule.compute_at(block, i0, preserve_unit_loops=True)
    realize = schedule.get(block)
    assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
    names = [iterator.var.name for iterator in realize.block.iter_vars]
    inner = draft.loops(block)[len(other_loops) + 2 :]
    a0, a1 = schedule.split(inner[names.index(facts.axes[read].name)], [None, lanes])
    b0, b1 = schedule.split(inner[names.index(facts.axes[written].name)], [None, lanes])
    schedule.reorder(b0, a0, b1, a1)
    schedule.unroll(b1)
    schedule.vectorize(a1)
    draft.parallelize([*other_loops, j0, i0])
    if _is_large(draft, facts):
        schedule.annotate(draft.loops(copy)[0], STREAMS, 1)
    draft.scheduled.add(draft.block_name(copy))
    columns: list[tuple[int | None, ...]] = [(None,) * NUM_LEVELS for _ in facts.axes]
    written_columns = {_OUTER: first, _BLOCK: first + 1}
    columns[written] = tuple(written_columns.get(level) for level in range(NUM_LEVELS))
    remainder_levels = [_OUTER if index != written else None for index in range(len(facts.axes))]
    draft.nests.append(TiledNest(facts, tuple(columns), tuple(remainder_levels), None))


def _divisor(extent: int, most: int) -> int:
    return max(d for d in divisors(extent) if d <= most)
