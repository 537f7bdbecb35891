"""The rule for chains of matrix products and row reductions, such as attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from compiler.ir.core.nodes import BlockRealize
from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.cpu.chains.online_chains import online_chain
from tuner.space.rules.cpu.chains.panels import copy_columns, copy_rows
from tuner.space.rules.cpu.chains.streamed_chains import keep_wide, streamed_chain
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.epilogue import is_epilogue
from tuner.space.rules.product_chain import ProductChain, find_product_chain
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_ROWS = 8
"""Rows of a register tile: with two vectors of columns they fill the 16 vector registers of AVX2.
"""
MIN_ROWS = 4
"""Rows whose number has no divisor from here to `MAX_ROWS` are cut into tiles that need not divide
it: smaller tiles load too much for each multiply-add. Chosen.
"""
MAX_VECTORS = 4
"""Vectors of a row of a register tile, or of its partial results. Chosen."""
_COUNTS = (1, 2, 4, 8, 16)
"""Options for the register tiles of an iteration, if they do not divide the rows. Chosen."""
_STEPS = (2, 4, 1, 3, 5, 7)
"""Options for the unrolled steps of a sum, the best first; three of those that divide it are in a
sketch. Chosen.
"""
_Copy: TypeAlias = tuple[str, TensorAccess, int]
"""The block that copies an operand, the access to it, and its dimension along columns."""
_OUTER, _COLUMNS, _TILE, _INNER, _UNROLLED, _REGISTERS = 0, 1, 3, 4, 5, 6


@dataclass(frozen=True)
class _ColumnTiles:
    """The loops over the panels of a product's columns and over the lanes of one.

    Attributes:
        width: The number of lanes.
        columns: The columns of the table with their extents, by level.
    """

    panels: LoopRV
    lanes: LoopRV
    width: ExprRV
    columns: dict[int, int]


class ProductChains:
    """Computes a tile of rows through all blocks, so that intermediate results stay in the cache.

        S = Q @ K.T                     for h: KT = K[h].T
        P = exp(S - max(S))        ->       for i_0 in ...:
        W = P / sum(P)                          S = Q[h, i_0] @ KT, in register tiles
        O = W @ V                               P = ...; W = ..., row by row
                                                O[h, i_0] = W @ V[h], in register tiles

    An operand whose rows run along the sum, such as `K`, is transposed once for all rows that use
    it. The copy consists of panels as wide as a register tile. In full rows, whose stride is often
    a power of two, the lines of a panel would evict each other from the first-level cache.

    Tiles need not divide rows or columns. Then the panels are padded, and so are all intermediate
    results, because they are buffers of one iteration. Rows that are read from a parameter, such as
    those of `Q`, are first copied into a padded panel. So only the output has guards.

    Worked example, `attention:1,12,128,128,64` (12 heads, 128 rows, 64 columns):

        block       axes               role
        products    b, h, i, j, (k)    a product: column j, step k
        scores      b, h, i, j         elementwise, on each finished tile of `products`
        largest     b, h, i, (k)       a reduction of each row, in lanes
        powers      b, h, i, j         elementwise
        total       b, h, i, (k)       a reduction of each row, in lanes
        B           b, h, i, j         elementwise
        out         b, h, i, c, (k)    a product, and the sink: column c, step k

    `row_axes` finds that all blocks share the rows (b, h, i): a row of `out` needs one row of each
    other block. The last row axis, i, is cut into three: i_0 outside of all blocks, i_1 over the
    register tiles of an iteration, i_2 the rows of a register tile. Columns 0 to 2 of the table
    hold their extents. If i_0 is 16, an iteration holds 8 rows of each block, 4 KiB a block, in the
    first-level cache. `K` is copied into panels inside of the loop over h, once for 128 rows.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule the whole program, if it is such a chain."""
        chain = find_product_chain(draft, has_epilogue=True, has_dot_products=True)
        if chain is None or (chain.epilogue is not None and not _reduces_rows(chain)):
            return [draft]
        variants = (streamed_chain(draft, chain), online_chain(draft, chain))
        forks = [variant for variant in variants if variant is not None]
        if any(block.vector_axis is None for block in chain.products):
            return forks or [draft]
        fork = draft.fork("products", "fused")
        try:
            _ProductScheduler(fork, chain).run()
        except ScheduleError:
            return forks or [draft]
        return [*forks, fork]


def _reduces_rows(chain: ProductChain) -> bool:
    """Return whether a chain has other reductions than products, such as a softmax.

    Products with nothing but elementwise blocks between and after them are tiled one by one.
    """
    return any(block.is_reduction and block.name not in chain.tiled for block in chain.blocks)


@dataclass
class _ProductScheduler:
    """Schedules the blocks of a chain."""

    draft: SketchBuilder
    chain: ProductChain
    height: ExprRV | None = None
    row_columns: dict[int, int] = field(default_factory=dict)
    around: list[LoopRV] = field(default_factory=list)
    lanes: tuple[ExprRV, int] | None = None
    unrolled: tuple[ExprRV, int] | None = None
    starts: dict[str, LoopRV] = field(default_factory=dict)
    is_packed: bool = False
    is_padded: bool = False

    def run(self) -> None:
        """Place all blocks under the loops over tiles of rows, and expand each."""
        copies = {name: self._copy(self._facts(name)) for name in self.chain.tiled}
        self._place()
        done: set[str] = set()
        for block in self.chain.blocks:
            if block.name in self.chain.tiled:
                if self.is_padded:
                    self._copy_rows(block)
                done |= self._tile(block, copies[block.name])
            elif block.is_reduction:
                self._reduce(block)
            elif block.name not in done:
                self._expand(block)
            self.draft.scheduled.add(block.name)
        # All tiles of the loop share a copy, so only the loops around the copy are parallel.
        depth = len(self.around) - self.is_packed
        if depth:
            self.draft.parallelize(self.around[:depth])
        for name, loop in self.starts.items():
            self._start(name, loop)

    def _facts(self, name: str) -> BlockFacts:
        return next(block for block in self.chain.blocks if block.name == name)

    def _copy(self, block: BlockFacts) -> _Copy | None:
        """Copy an operand that is not contiguous along the columns; return its layout."""
        column, _ = self.chain.tiled[block.name]
        for read in block.reads:
            target = dimension(read, column)
            if read.strides[column] in (0, 1) or target is None:
                continue
            schedule = self.draft.schedule
            copy = schedule.cache_read(schedule.get_block(block.name), read.buffer, "global")
            return self.draft.block_name(copy), read, target
        return None

    def _place(self) -> None:
        sink = self.chain.sink
        rows = self.chain.rows.of[sink.name]
        schedule, loops = self.draft.schedule, self.draft.loops(sink.name)
        outer, *parts = self._split_rows(loops[rows[-1]], sink.axes[rows[-1]].extent)
        self.around = [*(loops[row] for row in rows[:-1]), outer]
        inner = [loop for index, loop in enumerate(loops) if index not in rows]
        schedule.reorder(*self.around, *parts, *inner)
        for block in reversed(self.chain.blocks[:-1]):
            schedule.compute_at(schedule.get_block(block.name), outer, preserve_unit_loops=True)

    def _split_rows(self, loop: LoopRV, extent: int) -> list[LoopRV]:
        """Cut rows into iterations of register tiles; round up if no good tile divides them."""
        draft = self.draft
        if extent < MIN_ROWS or any(extent % n == 0 for n in range(MIN_ROWS, MAX_ROWS + 1)):
            factors, first = draft.tile(loop, extent, 3, MAX_ROWS)
            self.height = factors[2]
            self.row_columns = {_OUTER: first, _TILE: first + 1, _REGISTERS: first + 2}
            return list(draft.schedule.split(loop, factors))
        self.is_padded = True
        heights = padded_sizes(extent, range(MAX_ROWS, 1, -1))
        counts = [n for n in _COUNTS if n <= -(-extent // heights[0])]
        count, self.row_columns[_TILE] = draft.choose(counts)
        self.height, self.row_columns[_REGISTERS] = draft.choose(heights)
        return list(draft.schedule.split(loop, [None, count, self.height]))

    def _split_columns(
        self, loop: LoopRV, extent: int, lanes: int, *, is_copied: bool
    ) -> _ColumnTiles:
        """Cut columns into register tiles; round up if vectors do not divide those of a copy."""
        draft = self.draft
        if extent % lanes == 0 or not is_copied:
            factors, first = draft.tile(loop, extent, 2, MAX_VECTORS * lanes)
            panels, vector = draft.schedule.split(loop, factors)
            return _ColumnTiles(
                panels, vector, factors[1], {_COLUMNS: first, _REGISTERS: first + 1}
            )
        sizes = (n * lanes for n in range(1, MAX_VECTORS + 1) if (n - 1) * lanes < extent)
        widths = padded_sizes(extent, sizes)
        width, column = draft.choose(widths)
        panels, vector = draft.schedule.split(loop, [None, width])
        return _ColumnTiles(panels, vector, width, {_REGISTERS: column})

    def _copy_rows(self, block: BlockFacts) -> None:
        """Copy the rows of a parameter, in panels as high as a register tile, with padding."""
        schedule = self.draft.schedule
        row, (column, step) = self.chain.rows.of[block.name][-1], self.chain.tiled[block.name]
        made = {other.write.buffer for other in self.chain.blocks}
        for read in block.reads:
            across, along = dimension(read, row), dimension(read, step)
            if across is None or along is None or read.strides[column] or read.buffer in made:
                continue
            assert self.height is not None, "rows were split before"
            copy = schedule.cache_read(schedule.get_block(block.name), read.buffer, "global")
            schedule.compute_at(copy, self.around[-1], preserve_unit_loops=True)
            copy_rows(self.draft, copy, read, (across, along), self.height)
            keep_wide(self.draft, copy, read.item_bytes, self.chain)
            self.draft.scheduled.add(self.draft.block_name(copy))

    def _loops(self, block: BlockFacts) -> tuple[LoopRV, LoopRV, dict[int, LoopRV]]:
        """Return the outer and the register loop over the rows of a tile, and the other loops."""
        loops = self.draft.loops(block.name)[len(self.around) :]
        inner = self.chain.inner(block)
        if block is self.chain.sink:
            return loops[0], loops[1], dict(zip(inner, loops[2:], strict=True))
        realize = self.draft.schedule.get(self.draft.schedule.get_block(block.name))
        assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
        names = [iterator.var.name for iterator in realize.block.iter_vars]
        by_axis = {i: loops[names.index(axis.name)] for i, axis in enumerate(block.axes)}
        row = by_axis[self.chain.rows.of[block.name][-1]]
        tile, registers = self.draft.schedule.split(row, [None, self.height])
        return tile, registers, {i: by_axis[i] for i in inner}

    def _tile(self, block: BlockFacts, copy: _Copy | None) -> set[str]:
        """Cut a product into register tiles; return the blocks that run on each finished tile."""
        schedule = self.draft.schedule
        column, step = self.chain.tiled[block.name]
        tile, registers, inner = self._loops(block)
        lanes = max(1, self.draft.cpu.vector_bits // (8 * block.write.item_bytes))
        extent, is_copied = block.axes[column].extent, copy is not None
        cut = self._split_columns(inner[column], extent, lanes, is_copied=is_copied)
        panel, vector = cut.panels, cut.lanes
        if self.unrolled is None:
            extents = [b.axes[self.chain.tiled[b.name][1]].extent for b in self.chain.products]
            dividing = [n for n in _STEPS if not any(e % n for e in extents)]
            self.unrolled = self.draft.choose(dividing[:3])
        outer, steps = schedule.split(inner[step], [None, self.unrolled[0]])
        schedule.reorder(panel, tile, outer, steps, registers, vector)
        taken = self._take_up(block, tile)
        schedule.unroll(steps)
        schedule.unroll(registers)
        schedule.vectorize(vector)
        self.starts[block.name] = outer
        columns_by_axis = {
            column: cut.columns,
            step: {_UNROLLED: self.unrolled[1]},
        }
        self._add_nest(block, columns_by_axis, column)
        if copy is not None:
            self._pack(copy, cut.width)
        return taken

    def _take_up(self, block: BlockFacts, tile: LoopRV) -> set[str]:
        consumers = self.draft.consumers(block.name)
        epilogue = [] if self.chain.epilogue is None else [self.chain.epilogue]
        taken = [b for b in (*self.chain.blocks, *epilogue) if b.name in consumers]
        if len(taken) != 1 or not is_epilogue(block, taken[0]):
            return set()
        schedule = self.draft.schedule
        schedule.reverse_compute_at(
            schedule.get_block(taken[0].name), tile, preserve_unit_loops=True
        )
        *_, rows, columns = self.draft.loops(taken[0].name)
        schedule.unroll(rows)
        schedule.vectorize(columns)
        return {taken[0].name}

    def _pack(self, copy: _Copy, width: ExprRV) -> None:
        """Transpose an operand into panels, once for all tiles of rows."""
        name, read, column = copy
        schedule = self.draft.schedule
        block = schedule.get_block(name)
        if len(self.around) > 1:
            schedule.compute_at(block, self.around[-2], preserve_unit_loops=True)
            self.is_packed = True
        copy_columns(self.draft, block, read, column, width)
        keep_wide(self.draft, block, read.item_bytes, self.chain)
        self.draft.scheduled.add(name)

    def _reduce(self, block: BlockFacts) -> None:
        """Reduce rows in lanes, as many rows at once as a register tile has."""
        schedule = self.draft.schedule
        _, registers, inner = self._loops(block)
        steps = list(inner.values())
        schedule.reorder(*steps, registers)
        schedule.unroll(registers)
        if self.lanes is None:
            width = max(1, self.draft.cpu.vector_bits // (8 * block.write.item_bytes))
            sizes = tuple(width * n for n in (1, 2, MAX_VECTORS))
            extent = block.axes[block.lane_axis or 0].extent
            self.lanes = self.draft.cut(extent, sizes)
        schedule.annotate(steps[-1], KEY, self.lanes[0])
        self.starts[block.name] = steps[0]
        assert block.lane_axis is not None, "a chain has no other reductions"
        columns_by_axis = {block.lane_axis: {_INNER: self.lanes[1], _REGISTERS: self.lanes[1] + 1}}
        self._add_nest(block, columns_by_axis, block.lane_axis)

    def _expand(self, block: BlockFacts) -> None:
        loops = self.draft.loops(block.name)
        if self.chain.inner(block) and block.vector_axis is not None:
            self.draft.schedule.vectorize(loops[-1])
        handle = self.draft.schedule.get_block(block.name)
        keep_wide(self.draft, handle, block.write.item_bytes, self.chain)

    def _start(self, name: str, loop: LoopRV) -> None:
        """Move the initialisation of a reduction out of its loop."""
        schedule = self.draft.schedule
        block = schedule.get_block(name)
        init = schedule.decompose_reduction(block, loop)
        loops = self.draft.loops(init)
        if name in self.chain.tiled:
            schedule.vectorize(loops.pop())
        schedule.unroll(loops[-1])
        self.draft.scheduled |= {self.draft.block_name(init), self.draft.block_name(block)}

    def _add_nest(
        self, block: BlockFacts, columns_by_axis: dict[int, dict[int, int]], vector: int
    ) -> None:
        rows = self.chain.rows.of[block.name]
        cut = {rows[-1]: self.row_columns, **columns_by_axis}
        columns = tuple(
            tuple(cut.get(index, {}).get(level) for level in range(NUM_LEVELS))
            for index in range(len(block.axes))
        )
        remainder_levels = tuple(
            _remainder_level(cut.get(index, {}), is_row=index in rows)
            for index in range(len(block.axes))
        )
        self.draft.nests.append(TiledNest(block, columns, remainder_levels, vector))


def _remainder_level(cut: Mapping[int, int], *, is_row: bool) -> int | None:
    """Return the level of the part of an axis that no knob decides; None if there is none."""
    if is_row:
        return None if _OUTER in cut else _OUTER
    if _COLUMNS in cut or {_INNER, _REGISTERS} <= cut.keys():
        return None
    return _COLUMNS if _REGISTERS in cut else _INNER
