"""Chains of two products with a softmax between them, in blocks of keys."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from math import gcd, prod

from compiler.passes.cpu.reduce_in_lanes import KEY as LANES
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.cpu.chains.panels import copy_columns, copy_rows
from tuner.space.rules.cpu.chains.streamed_chains import keep_wide
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.online_blocks import OnlineBlocks, is_one_softmax
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder

MIN_ROWS = 16
"""Rows that share the panels of keys and values, at least: copies for fewer do not pay. Chosen."""
HEIGHTS = (4, 6, 8, 5, 7, 3, 2)
"""Options for the rows of a register tile. Chosen."""
COUNTS = (8, 16, 4, 32, 2, 1)
"""Options for the register tiles along the rows that read each block of keys. Chosen."""
MIN_KEYS, MAX_KEYS = 32, 256
"""Limits of the keys in a block. In blocks of 64 keys, 512 causal queries of 128 numbers took 32 ms
on Zen 3; in blocks of 128 and 256, 34 and 41 ms.
"""
NUM_SIZES = 4
"""Options for the keys in a block: more would fill the sketch with similar schedules. Chosen."""
MAX_VECTORS = 4
"""Vectors of a row of a register tile, or of its partial results. Chosen."""
STEPS = (2, 4, 1)
"""Options for the unrolled steps of a sum. Chosen."""
_OUTER, _COLUMNS, _BLOCKS, _TILE, _INNER, _UNROLLED, _REGISTERS = range(7)


def online_chain(draft: SketchBuilder, chain: ProductChain) -> SketchBuilder | None:
    """Return a fork that computes a chain in blocks of keys, whose scores are never stored whole.

        S = Q @ K.T                     for h: KT = K[h].T; VP = V[h]  # in panels
        P = exp(S - max(S))        ->       for i_0 in ...:
        W = P / sum(P)                          for j_0 in ...:  # if the mask includes any of them
        O = W @ V                                   S = Q[h, i_0] @ KT[j_0], in register tiles
                                                    m, f, W, l = ...  # of the rows so far
                                                    O[h, i_0] *= f
                                                    O[h, i_0] += W @ VP[j_0], in register tiles
                                                O[h, i_0] /= l

    The scores of a block of keys stay in the first-level cache, however many keys there are. A
    causal mask excludes half of the blocks.

    Returns:
        None if the chain has another form or few rows, or no good block divides the keys.
    """
    if not (is_one_softmax(chain) and chain.is_nested):
        return None
    if chain.sink.axes[-3].extent < MIN_ROWS:
        return None
    lanes = max(1, draft.cpu.vector_bits // (8 * chain.sink.write.item_bytes))
    sizes = _key_blocks(chain.sink.axes[-1].extent, lanes)
    if not sizes:
        return None
    fork = draft.fork("online", "fused")
    try:
        _KeyBlockScheduler(fork, chain, lanes).run(sizes)
    except ScheduleError:
        return None
    return fork


def _key_blocks(num_keys: int, lanes: int) -> list[int]:
    """Return sizes of blocks that divide the keys; panels of whole or half vectors divide them."""
    sizes = [n for n in divisors(num_keys) if MIN_KEYS <= n <= MAX_KEYS and n < num_keys]
    for unit in (2 * lanes, lanes, lanes // 2):
        fitting = [n for n in sizes if unit and n % unit == 0]
        if fitting:
            return sorted(fitting, key=lambda n: abs(n - 2 * MIN_KEYS))[:NUM_SIZES]
    return []


def _widths(lanes: int) -> list[int]:
    """Return the widths of panels of keys: two vectors first, then others, also of half vectors."""
    halves = [n * lanes // 2 for n in range(2, 2 * MAX_VECTORS + 1)]
    return sorted(halves, key=lambda width: (width % lanes, abs(width - 2 * lanes)))


@dataclass(frozen=True)
class _OperandPanels:
    """A copy of an operand of a product.

    Attributes:
        block: The block that copies.
        read: The access to the operand.
        column: The dimension along the columns of the product; None if it holds rows.
        depth: The number of loops around the chain that select what is copied.
    """

    block: BlockRV
    read: TensorAccess
    column: int | None
    depth: int


@dataclass
class _KeyBlockScheduler:
    """Schedules the blocks of a chain."""

    draft: SketchBuilder
    chain: ProductChain
    lanes: int
    around: list[LoopRV] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Sample the decisions that several blocks share."""
        draft, sink = self.draft, self.chain.sink
        self.row = self.chain.rows.of[sink.name][-1]
        rows = sink.axes[self.row].extent
        heights = padded_sizes(rows, HEIGHTS)
        self.height, height_column = draft.choose(heights)
        self.count, count_column = draft.choose([n for n in COUNTS if n * min(heights) <= rows])
        self.row_columns = {_TILE: count_column, _REGISTERS: height_column}
        self.steps, self.step_column = draft.choose(STEPS)

    def run(self, sizes: list[int]) -> None:
        """Put all blocks into the loop over blocks of keys, and expand each.

        Args:
            sizes: Options for the keys in a block.
        """
        draft, schedule, chain = self.draft, self.draft.schedule, self.chain
        first, sink = chain.products
        copies = {block.name: self._copy_operands(block) for block in (first, sink)}
        size, keys_column = draft.cut(sink.axes[-1].extent, sizes)
        keys, width, width_column = self._tile_sink(size)
        blocks = OnlineBlocks.merged(draft, chain, keys)
        for block in (blocks.start, blocks.scale, blocks.divide, blocks.powers, blocks.weights):
            schedule.vectorize(draft.loops(block)[-1])
        keep_wide(draft, blocks.weights, chain.blocks[-2].write.item_bytes, chain)
        lanes, lane_column = self._choose_lanes(min(sizes))
        for block in (blocks.of_maxima, blocks.of_totals):
            self._reduce(block, lanes)
        common = gcd(*sizes)
        panels = [n for n in _widths(self.lanes) if common % n == 0] or [common]
        panel, panel_column = draft.choose(panels)
        start = self._tile_scores(keys, panel)
        depth = self._pack(first, copies, panel)
        depth = max(depth, self._pack(sink, copies, width))
        draft.parallelize(self.around[:depth])
        init = schedule.decompose_reduction(schedule.get_block(first.name), start)
        *_, row, column = draft.loops(init)
        schedule.unroll(row)
        schedule.vectorize(column)
        self._skip_masked(keys)
        names = {draft.block_name(init), f"{first.name}_update", f"{sink.name}_update"}
        draft.scheduled |= names | {block.name for block in chain.blocks}
        self._note((keys_column, panel_column, width_column, lane_column))

    def _choose_lanes(self, most: int) -> tuple[ExprRV, int]:
        sizes = [self.lanes * n for n in (1, 2, MAX_VECTORS) if self.lanes * n <= most]
        return self.draft.cut(self.chain.sink.axes[-1].extent, sizes)

    def _copy_operands(self, block: BlockFacts) -> list[_OperandPanels]:
        """Copy the operands of a product that are parameters."""
        draft, rows = self.draft, self.chain.rows.of[block.name]
        made = {other.write.buffer for other in self.chain.blocks}
        column, _ = self.chain.tiled[block.name]
        copies = []
        for read in block.reads:
            target = dimension(read, column)
            if read.buffer in made or (target is None and dimension(read, self.row) is None):
                continue
            selecting = [i for i, row in enumerate(rows[:-1], 1) if read.strides[row]]
            depth = max(selecting, default=0)
            handle = draft.schedule.get_block(block.name)
            copy = draft.schedule.cache_read(handle, read.buffer, "global")
            copies.append(_OperandPanels(copy, read, target, depth))
        return copies

    def _tile_sink(self, size: ExprRV) -> tuple[LoopRV, ExprRV, int]:
        """Cut the last product; return the loop over blocks of keys, and the width of panels."""
        draft, schedule, sink = self.draft, self.draft.schedule, self.chain.sink
        *outer, row, column, step = draft.loops(sink.name)
        rows, tile, registers = schedule.split(row, [None, self.count, self.height])
        keys, step = schedule.split(step, [None, size])
        steps, unrolled = schedule.split(step, [None, self.steps])
        extent = sink.axes[self.row + 1].extent
        factors, first = draft.tile(column, extent, 2, MAX_VECTORS * self.lanes)
        panels, vector = schedule.split(column, factors)
        self.around = [*outer, rows]
        schedule.reorder(*self.around, keys, panels, tile, steps, unrolled, registers, vector)
        schedule.unroll(unrolled)
        schedule.unroll(registers)
        schedule.vectorize(vector)
        if self.chain.epilogue is not None:
            epilogue = schedule.get_block(self.chain.epilogue.name)
            schedule.reverse_compute_at(epilogue, rows, preserve_unit_loops=True)
            schedule.vectorize(draft.loops(epilogue)[-1])
            draft.scheduled.add(self.chain.epilogue.name)
        return keys, factors[1], first

    def _reduce(self, block: BlockRV, lanes: ExprRV) -> None:
        """Reduce a block of keys in lanes, as many rows at once as a register tile has."""
        schedule = self.draft.schedule
        *_, row, step = self.draft.loops(block)
        tile, registers = schedule.split(row, [None, self.height])
        schedule.reorder(tile, step, registers)
        schedule.unroll(registers)
        schedule.annotate(step, LANES, lanes)
        init = schedule.decompose_reduction(block, step)
        schedule.unroll(self.draft.loops(init)[-1])
        name = self.draft.block_name(init)
        self.draft.scheduled |= {name, f"{name.removesuffix('_init')}_update"}

    def _tile_scores(self, keys: LoopRV, panel: ExprRV) -> LoopRV:
        """Compute the scores of a block of keys in register tiles; return the loop over steps."""
        draft, schedule, chain = self.draft, self.draft.schedule, self.chain
        first, second = chain.blocks[:2]
        has_scores = not second.is_reduction
        block = schedule.get_block((second if has_scores else first).name)
        schedule.compute_at(block, keys, preserve_unit_loops=True)
        row, column, *sums = draft.loops(block)[-2 if has_scores else -3 :]
        panels, vector = schedule.split(column, [None, panel])
        tile, registers = schedule.split(row, [None, self.height])
        schedule.reorder(panels, tile, *sums, registers, vector)
        if has_scores:
            schedule.unroll(registers)
            schedule.vectorize(vector)
            product = schedule.get_block(first.name)
            schedule.compute_at(product, tile, preserve_unit_loops=True)
            registers, vector, *sums = draft.loops(product)[-3:]
        steps, unrolled = schedule.split(sums[0], [None, self.steps])
        schedule.reorder(steps, unrolled, registers, vector)
        schedule.unroll(unrolled)
        schedule.unroll(registers)
        schedule.vectorize(vector)
        return steps

    def _pack(
        self, block: BlockFacts, copies: dict[str, list[_OperandPanels]], width: ExprRV
    ) -> int:
        """Pack the operands of a product; return the number of loops around the panels of keys.

        Panels are shared by as many tiles as possible, if the cores are busy nevertheless.
        """
        draft, sink = self.draft, self.chain.sink
        around, depth = self.around, 0
        for copy in copies[block.name]:
            keep_wide(draft, copy.block, copy.read.item_bytes, self.chain)
            draft.scheduled.add(draft.block_name(copy.block))
            if copy.column is None:
                draft.schedule.compute_at(copy.block, around[-1], preserve_unit_loops=True)
                step = dimension(copy.read, self.chain.tiled[block.name][1])
                row = dimension(copy.read, self.row)
                assert step is not None, "products have operands of rows along their sums"
                assert row is not None, "rows were copied"
                copy_rows(draft, copy.block, copy.read, (row, step), self.height)
                continue
            depth = copy.depth
            if prod(axis.extent for axis in sink.axes[:depth]) < draft.target.num_cores:
                depth = len(around) - 1
            if depth:
                at = around[depth - 1]
                draft.schedule.compute_at(copy.block, at, preserve_unit_loops=True)
            copy_columns(draft, copy.block, copy.read, copy.column, width)
        return depth

    def _skip_masked(self, keys: LoopRV) -> None:
        """Skip the blocks of keys that a mask excludes, if the chain has a mask that can."""
        with suppress(ScheduleError):
            self.draft.schedule.skip_masked(keys)

    def _note(self, columns: tuple[int, int, int, int]) -> None:
        """Record the products and the reductions.

        Args:
            columns: The columns of the table with the blocks of keys, the width of a panel of keys,
                that of a panel of values, and the partial results of a reduction.
        """
        keys, panel, width, lanes = columns
        first, *between, sink = self.chain.blocks
        last = self.row + 1
        of_sink = {last: {_COLUMNS: width, _REGISTERS: width + 1}}
        of_sink[last + 1] = {_BLOCKS: keys, _INNER: keys + 1}
        self._note_block(sink, of_sink, {}, last)
        of_scores = {
            last: {_OUTER: keys, _REGISTERS: panel},
            last + 1: {_UNROLLED: self.step_column},
        }
        self._note_block(first, of_scores, {last: _COLUMNS, last + 1: _INNER}, last)
        for block in between:
            if block.is_reduction:
                pieces = {last: {_INNER: lanes, _REGISTERS: lanes + 1}}
                self._note_block(block, pieces, {}, last)

    def _note_block(
        self,
        block: BlockFacts,
        columns: dict[int, dict[int, int]],
        rest: dict[int, int],
        vector: int,
    ) -> None:
        rows = dict.fromkeys(self.chain.rows.of[block.name], _OUTER)
        self.draft.note(block, {self.row: self.row_columns, **columns}, {**rows, **rest}, vector)
