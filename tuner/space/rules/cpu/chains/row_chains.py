"""The rule for chains of row reductions and elementwise steps, such as softmax and layer norm."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.ir.core.nodes import BlockRealize
from compiler.passes.cpu.interleave_loops import KEY as INTERLEAVE_KEY
from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cpu.constant_rows import constant_row_forks
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.row_chain import RowChain, find_row_chain
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_ROWS = 8
"""Rows that are reduced at once: their chains of dependent additions overlap. Two units with a
latency of four cycles need eight.
"""
MAX_VECTORS = 8
"""Vectors of partial results a row, or of columns: half of the vector registers of AVX2. Chosen."""
STEPS = (1, 2, 4)
"""Unrolled steps of a reduction: fewer loop instructions against longer code. Chosen."""
PIECES = (1, 2, 4, 8)
"""Options for the vectors that an elementwise block computes in a step. Chosen."""
_ROW_BYTES = 1 << 16
"""A larger operand is no row that stays in the caches, such as the weights of a layer norm. Chosen.
"""
_OUTER, _TILE, _INNER, _REGISTERS = 0, 3, 4, 6


class RowChains:
    """Computes a few rows at a time through all blocks, so that memory is read once.

        for i, k in ...:                     for i_0 in ...:  # parallel
            M[i] = max(M[i], A[i, k])            for k in ...:  # in lanes
        for i, j in ...:                             for i_1 in ...:  # unrolled
            E[i, j] = exp(A[i, j] - M[i])  ->            M[i] = max(M[i], A[i, k])
        for i, k in ...:                         for i_1, j in ...:  # j vectorized
            S[i] += E[i, k]                          E[i, j] = exp(A[i, j] - M[i])
        ...                                      ...

    If neighbours in memory belong to different rows, each lane of a vector holds another row
    instead. A reduction over a contiguous axis is a chain of one block.

    Worked example, `softmax:512,1024`:

        block      axes        role
        largest    i0, (k)     a reduction of each row, in lanes
        powers     i0, i1      elementwise: vectorized along i1
        total      i0, (k)     a reduction of each row, in lanes
        B          i0, i1      elementwise, and the sink

    All blocks share the rows i0, which are cut in two: with tiles of 4 rows, an iteration reads 16
    KiB of the input from memory. `powers` has the same size and stays in the caches until `B` is
    written. The four rows are unrolled inside of the loop over k, so that four chains of dependent
    maxima, or additions, overlap. The sketch has four knobs: the rows of a tile, which need not
    divide them, the number of partial results (8, 16, 32 or 64 with vectors of 8 floats), the
    unrolled steps of a reduction, and the elements that `powers` and `B` compute at once.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule the whole program, if it is such a chain."""
        chain = find_row_chain(draft)
        if chain is None:
            return [draft]
        fork = draft.fork("columns" if chain.is_across else "rows")
        try:
            _RowScheduler(fork, chain).run()
        except ScheduleError:
            return [draft]
        panels = constant_row_forks(draft, draft.block_facts())
        return [fork, *_read_ahead(draft, chain), *panels]


def _read_ahead(draft: SketchBuilder, chain: RowChain) -> list[SketchBuilder]:
    """Return a fork that reads each row while it computes with the one before, if that may pay.

        added[0] = A[0] + R[0]
        for i in ...:
            total = sum(added[i % 2])
            for j0 in ...:
                spread += (added[i % 2, j0 ...] - mean) ** 2
                added[(i + 1) % 2, j0 ...] = A[i + 1, j0 ...] + R[i + 1, j0 ...]
            B[i] = ...

    Rows come from a cache beyond the second. A core runs few instructions ahead: without this, it
    waits for a row, and then computes. Pipelined loops are serial, so that it is for one core.
    """
    first, sink = chain.blocks[0], chain.blocks[-1]
    moved = [access for access in (*first.reads, sink.write) if access.size_bytes > _ROW_BYTES]
    is_far = sum(access.size_bytes for access in moved) > draft.cpu.l2_bytes
    is_read_first = not first.is_reduction and first is not sink and bool(chain.rows.of[first.name])
    if chain.is_across or not is_far or not is_read_first or draft.target.num_cores > 1:
        return []
    fork = draft.fork("rows_ahead")
    try:
        _RowScheduler(fork, chain, reads_ahead=True).run()
    except ScheduleError:
        return []
    return [fork]


@dataclass
class _RowScheduler:
    """Schedules the blocks of a chain."""

    draft: SketchBuilder
    chain: RowChain
    reads_ahead: bool = False
    depth: int = 0
    row: int = -1
    row_column: int | None = None
    lanes: ExprRV | None = None
    lane_column: int = 0
    steps: ExprRV | None = None
    piece: ExprRV | None = None
    around: list[LoopRV] = field(default_factory=list)
    reductions: dict[str, LoopRV] = field(default_factory=dict)

    def run(self) -> None:
        """Place all blocks under the loops over rows, and expand each."""
        self._place()
        if not self.chain.is_across:
            self._choose_lanes()
            if not self.reads_ahead:
                self._choose_pieces()
        for block in self.chain.blocks:
            if block.is_reduction:
                self._expand_reduction(block)
            else:
                self._expand_spatial(block)
            if self.chain.inner(block):
                self.draft.nests.append(self._nest(block))
            self.draft.scheduled.add(block.name)
        if self.around:
            self.depth = self.draft.parallelize(self.around)
        for name, loop in self.reductions.items():
            update = self.draft.schedule.get_block(name)
            init = self.draft.schedule.decompose_reduction(update, loop)
            self._expand_init(init)
            self.draft.scheduled |= {self.draft.block_name(init), self.draft.block_name(update)}
        if self.reads_ahead:
            self._read_ahead()

    def _read_ahead(self) -> None:
        """Run the first block one iteration ahead, in the loop of the last reduction."""
        schedule, blocks = self.draft.schedule, self.chain.blocks
        # A reduction is two statements: its start, and the loop.
        steps = [block for block in blocks[1:] for _ in range(1 + block.is_reduction)]
        last = max(n for n, block in enumerate(steps) if block.is_reduction)
        places = [n + (n >= last) for n in range(len(steps))]
        schedule.annotate(self.around[-1], "software_pipeline_stage", [0] + [1] * len(steps))
        schedule.annotate(self.around[-1], "software_pipeline_order", [last, *places])
        schedule.annotate(self.draft.loops(blocks[0].name)[-1], INTERLEAVE_KEY, 1)

    def _place(self) -> None:
        sink = self.chain.blocks[-1]
        rows = self.chain.rows.of.get(sink.name, ())
        if not rows:
            return
        schedule = self.draft.schedule
        loops = self.draft.loops(sink.name)
        if self.chain.is_across:
            limit = MAX_VECTORS * self._lanes_a_vector(sink)
            factors, self.row_column = self.draft.tile(
                loops[rows[-1]], sink.axes[rows[-1]].extent, 2, limit
            )
            outer, tile = schedule.split(loops[rows[-1]], factors)
        else:
            extents = [sink.axes[row].extent for row in rows]
            self.row = max((i for i, extent in enumerate(extents) if extent > 1), default=-1)
            extent = extents[self.row]
            size: int | ExprRV = 1
            if not self.reads_ahead:
                sizes = padded_sizes(extent, range(1, min(MAX_ROWS, extent) + 1))
                size, self.row_column = self.draft.cut(extent, sizes)
            outer, tile = schedule.split(loops[rows[self.row]], [None, size])
        self.around = [*(loops[row] for row in rows if row != rows[self.row]), outer]
        inner = [loop for index, loop in enumerate(loops) if index not in rows]
        schedule.reorder(*self.around, tile, *inner)
        self.depth = len(self.around)
        for block in reversed(self.chain.blocks[:-1]):
            schedule.compute_at(schedule.get_block(block.name), outer, preserve_unit_loops=True)

    def _lanes_a_vector(self, block: BlockFacts) -> int:
        return max(1, self.draft.cpu.vector_bits // (8 * block.write.item_bytes))

    def _choose_lanes(self) -> None:
        block = next(b for b in self.chain.blocks if b.is_reduction)
        width = self._lanes_a_vector(block)
        sizes = tuple(width * n for n in (1, 2, 4, 8) if n <= MAX_VECTORS)
        extent = block.axes[block.lane_axis or 0].extent
        self.lanes, self.lane_column = self.draft.cut(extent, sizes)
        self.steps, _ = self.draft.choose(STEPS)

    def _choose_pieces(self) -> None:
        """Choose the elements of a row that an elementwise block computes in one step."""
        spatial = [block for block in self.chain.blocks if not block.is_reduction]
        lengths = {self._joined_extent(block) for block in spatial if self.chain.inner(block)}
        if len(lengths) == 1:
            (length,) = lengths
            lanes = self._lanes_a_vector(spatial[-1])
            sizes = [length, *(lanes * n for n in PIECES if lanes * n < length)]
            self.piece, _ = self.draft.choose(sizes)

    def _loops(self, block: BlockFacts) -> tuple[list[LoopRV], dict[int, LoopRV]]:
        """Return the loops of a block over the rows of a tile, and those over its other axes."""
        loops = self.draft.loops(block.name)[self.depth :]
        rows = self.chain.rows.of.get(block.name, ())
        inner = self.chain.inner(block)
        if block is self.chain.blocks[-1]:
            row_loops = loops[:1] if rows else []
            return row_loops, dict(zip(inner, loops[len(row_loops) :], strict=True))
        if not rows:
            return [], dict(zip(inner, loops, strict=True))
        schedule = self.draft.schedule
        realize = schedule.get(schedule.get_block(block.name))
        assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
        names = [iterator.var.name for iterator in realize.block.iter_vars]
        by_axis = {i: loops[names.index(axis.name)] for i, axis in enumerate(block.axes)}
        return [by_axis[row] for row in rows], {i: by_axis[i] for i in inner}

    def _expand_reduction(self, block: BlockFacts) -> None:
        schedule = self.draft.schedule
        rows, inner = self._loops(block)
        steps = [loop for index, loop in inner.items() if block.axes[index].is_reduction]
        schedule.reorder(*steps, *rows)
        if self.chain.is_across:
            schedule.vectorize(rows[-1])
        else:
            axes = [index for index in inner if block.axes[index].is_reduction]
            steps = self._joined(block, axes, steps)
            assert self.lanes is not None, "chosen before"
            assert self.steps is not None, "chosen before"
            schedule.annotate(steps[-1], KEY, [self.lanes, self.steps])
            self._unroll(rows)
        self.reductions[block.name] = steps[0]

    def _expand_init(self, init: BlockRV) -> None:
        loops = self.draft.loops(init)[self.depth :]
        if self.chain.is_across and loops:
            self.draft.schedule.vectorize(loops[-1])
        else:
            self._unroll(loops)

    def _expand_spatial(self, block: BlockFacts) -> None:
        schedule = self.draft.schedule
        rows, inner = self._loops(block)
        if self.chain.is_across:
            schedule.reorder(*inner.values(), rows[-1])
            schedule.vectorize(rows[-1])
        elif inner:
            loops = self._joined(block, list(inner), list(inner.values()))
            if self.piece is not None:
                loops = [*loops[:-1], *schedule.split(loops[-1], [None, self.piece])]
            if self._shares_reads(block):
                schedule.reorder(*loops, *rows)
                self._unroll(rows)
            if block.write.strides[max(inner)] == 1:
                schedule.vectorize(loops[-1])
        else:
            self._unroll(rows)

    def _shares_reads(self, block: BlockFacts) -> bool:
        """Return whether the rows of a tile share vectors that they read, such as weights."""
        row_axes_of_block, inner = self.chain.rows.of.get(block.name, ()), self.chain.inner(block)
        return bool(row_axes_of_block) and any(
            not any(read.strides[row] for row in row_axes_of_block)
            and any(read.strides[i] for i in inner)
            for read in block.reads
        )

    def _joined_extent(self, block: BlockFacts) -> int:
        """Return the extent of the innermost loop that `_joined` returns for all inner axes."""
        *outer, axis = self.chain.inner(block)
        extent = block.axes[axis].extent
        while outer and block.runs_on(outer[-1], axis):
            axis = outer.pop()
            extent *= block.axes[axis].extent
        return extent

    def _joined(self, block: BlockFacts, axes: list[int], loops: list[LoopRV]) -> list[LoopRV]:
        """Fuse loops over axes that are contiguous together, from the innermost outwards."""
        joined = [loops[-1]]
        for outer, axis, following in zip(loops[-2::-1], axes[-2::-1], axes[:0:-1], strict=True):
            if len(joined) == 1 and block.runs_on(axis, following):
                joined[0] = self.draft.schedule.fuse(outer, joined[0])
            else:
                joined.insert(0, outer)
        return joined

    def _unroll(self, loops: list[LoopRV]) -> None:
        for loop in loops:
            self.draft.schedule.unroll(loop)

    def _nest(self, block: BlockFacts) -> TiledNest:
        rows = self.chain.rows.of.get(block.name, ())
        columns: list[tuple[int | None, ...]] = []
        remainder_levels: list[int | None] = []
        for index, axis in enumerate(block.axes):
            axis_columns: dict[int, int] = {}
            if rows and index == rows[self.row] and self.row_column is not None:
                is_register = self.chain.is_across or block.is_reduction
                is_register |= self._shares_reads(block)
                level = _REGISTERS if is_register else _TILE
                axis_columns = {_OUTER: self.row_column, level: self.row_column + 1}
            elif block.is_reduction and index == block.lane_axis and self.lanes is not None:
                axis_columns = {_INNER: self.lane_column, _REGISTERS: self.lane_column + 1}
            columns.append(tuple(axis_columns.get(level) for level in range(NUM_LEVELS)))
            remainder_level = _OUTER if index in rows else _INNER if axis.is_reduction else _TILE
            remainder_levels.append(None if axis_columns else remainder_level)
        vector = rows[-1] if self.chain.is_across else block.lane_axis
        return TiledNest(block, tuple(columns), tuple(remainder_levels), vector)
