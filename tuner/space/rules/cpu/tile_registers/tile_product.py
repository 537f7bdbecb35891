"""Products in the tile registers of a CPU (AMX): their panels, and how their sums are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.backends.cpu.codegen.emitters.group_copies import KEY as COPY_KEY
from compiler.backends.cpu.codegen.emitters.group_copies import WORD_BYTES
from compiler.backends.cpu.codegen.emitters.matrix_tiles import KEY, MAX_TILES, ROW_BYTES, ROWS
from compiler.backends.cpu.codegen.operations.dot_instructions import DotGroup
from compiler.passes.common.tile_buffers import KEY as LAYOUT_KEY
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.operand_roles import dimension
from tuner.space.analysis.product_roles import Operand, Product
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.cpu.step_groups import inline_producer
from tuner.space.rules.epilogue import elementwise_consumer, epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_BLOCKS = 128
"""Limit of the blocks of columns: the panels of one should stay in the second-level cache. Chosen.
"""
MAX_BLOCK_WASTE = 1.05
"""Limit of the panels in blocks of equally many, as a multiple of those with columns. Chosen."""
ROW_BLOCKS = (1, 2, 4, 8, 16, 32)
"""Options for the tiles in a block of rows. A panel of columns stays in the first-level cache for
several of them; a single one stays there itself. Chosen.
"""
MAX_UNROLLED_RUNS = 128
"""Limit of the copies of runs that are unrolled: the code of each is three instructions. Chosen."""
GATHERED = "gathered"
"""The tag of sketches whose operands are gathered from arrays of another form."""
OUTER, ROW_BLOCK, STEPS, PANELS, INNER, VECTOR = 0, 1, 2, 3, 4, 6
"""The levels of the loops of a product in the tables of decisions."""


def equal_blocks(num_tiles: int) -> list[int]:
    """Return the options for the tiles in a block of rows, if all blocks have equally many."""
    return list(dict.fromkeys(n for n in (*ROW_BLOCKS, num_tiles) if num_tiles % n == 0))


class TileProduct:
    """The parts that schedules of products by tile registers have in common.

    Args:
        draft: The draft.
        facts: The facts of the product.
        product: Its roles.
        is_padded: Whether blocks before it pad its operands.
        run: The elements along the sum that lie side by side where rows are gathered from; None if
            they are not.
    """

    def __init__(
        self,
        draft: SketchBuilder,
        facts: BlockFacts,
        product: Product,
        *,
        is_padded: bool,
        run: int | None = None,
    ) -> None:
        self._draft = draft
        self._facts = facts
        self._product = product
        self._is_padded = is_padded
        self._run = run
        self._depth = ROW_BYTES // product.left.read.item_bytes
        self._group = WORD_BYTES // product.left.read.item_bytes
        self._columns: dict[int, dict[int, int]] = {}

    def _shares_rows(self) -> bool:
        """Return whether threads share the rows, so that one packs the right operand for all."""
        rows, columns = (self._facts.axes[axis].extent for axis in self._product.tiled[:2])
        return rows > columns

    def _panels(self, loop: LoopRV) -> tuple[list[LoopRV], ExprRV]:
        draft, extent = self._draft, self._facts.axes[self._product.column].extent
        sizes = self._sizes(extent)
        count, first = draft.choose(self._block_counts(-(-extent // sizes[0])))
        size, last = draft.choose(sizes)
        self._columns[self._product.column] = {OUTER: first, VECTOR: last}
        return list(draft.schedule.split(loop, [count, None, size])), size

    def _block_counts(self, num_panels: int) -> list[int]:
        """Return the options for the number of blocks of columns."""
        powers = (1 << n for n in range(MAX_BLOCKS.bit_length()))
        counts = sorted({*powers, *divisors(num_panels)})
        num_cores = 1 if self._shares_rows() else self._draft.cpu.num_cores
        if self._run is not None:
            counts = [num_cores]  # rows are gathered again for each block
        return [
            n
            for n in counts
            if n <= min(num_panels, MAX_BLOCKS)
            and n % num_cores == 0
            and -(-num_panels // n) * n <= MAX_BLOCK_WASTE * num_panels
        ] or [1]

    def _sizes(self, extent: int) -> list[int]:
        return list(padded_sizes(extent, [n * ROWS for n in range(MAX_TILES, 0, -1)]))

    def _store_sums(self, block: BlockRV, loop: LoopRV, sizes: Mapping[int, int | ExprRV]) -> None:
        """Run a consumer on each finished block of tiles, or on the finished columns.

        The sums then lie in tiles of so many elements along each axis, with room for what is
        padded.
        """
        draft, schedule, product = self._draft, self._draft.schedule, self._product
        is_transposed = self._facts.write.strides[product.column] != 1
        is_padded = any(self._facts.axes[axis].extent % ROWS for axis in sizes)
        has_consumer = elementwise_consumer(draft, self._facts) is not None
        if not (is_padded or is_transposed or has_consumer):
            return
        consumer = epilogue_of(draft, self._facts, "global")
        layout: list[int | ExprRV] = [0]
        for axis, size in sizes.items():
            dim = dimension(self._facts.write, axis)
            assert dim is not None, "an index of the output is the axis"
            layout += [dim, size]
        schedule.annotate(block, LAYOUT_KEY, layout)
        schedule.reverse_compute_at(consumer, loop, preserve_unit_loops=True)
        spatial = [i for i, axis in enumerate(self._facts.axes) if not axis.is_reduction]
        loops = dict(zip(spatial, draft.loops(consumer)[-len(spatial) :], strict=True))
        row, column = loops.pop(product.row), loops.pop(product.column)
        if is_transposed:
            schedule.reorder(*loops.values(), row, column)
            schedule.unroll(row)  # tiles are transposed in registers
        else:
            schedule.reorder(row, column)
        schedule.vectorize(column)
        draft.tags |= {"fused"}

    def _pack(
        self, block: BlockRV, operand: Operand, loop: LoopRV | None, tile: ExprRV, group: int
    ) -> None:
        """Copy an operand into panels, as the instructions take it.

        Args:
            block: The product.
            operand: The operand.
            loop: The loop whose runs each read a copy; None if all read one.
            tile: The rows or columns of a panel.
            group: The neighbours along the sum that lie side by side.
        """
        draft, schedule = self._draft, self._draft.schedule
        copy = draft.copy_input(block, operand.read.buffer)
        if self._is_padded or GATHERED in draft.tags:
            inline_producer(draft, operand.read.buffer)
        if loop is not None:
            schedule.compute_at(copy, loop, preserve_unit_loops=True)
        loops = draft.loops(copy)[-len(operand.read.shape) :]
        panels, lane = schedule.split(loops[operand.across], [None, tile])
        groups, along = schedule.split(loops[operand.along], [None, group])
        if operand.read.strides[self._product.step] == 1:
            if self._run is not None and operand is self._product.left:
                # Unrolled, the place of each run in its window is a constant.
                part, along = schedule.split(along, [None, min(self._run, group)])
                schedule.reorder(panels, lane, groups, part, along)
                if operand.read.shape[operand.along] <= MAX_UNROLLED_RUNS * self._run:
                    schedule.unroll(groups)
                schedule.unroll(part)
            else:
                schedule.reorder(panels, groups, lane, along)
            schedule.vectorize(along)
            if group * operand.read.item_bytes == WORD_BYTES:
                schedule.annotate(groups, COPY_KEY, 1)
        else:
            # Rows across the sum are interleaved in registers.
            schedule.reorder(panels, groups, along, lane)
            schedule.unroll(along)
            schedule.vectorize(lane)
        if loop is None:
            draft.parallelize([panels])
        schedule.annotate(copy, LAYOUT_KEY, [0, operand.across, tile, operand.along, group])
        draft.scheduled.add(draft.block_name(copy))

    def _end(
        self,
        block: BlockRV,
        steps: tuple[LoopRV, LoopRV],
        packed: Sequence[Operand],
        rest: Mapping[int, int],
    ) -> None:
        """Multiply by tile registers, and record the decisions.

        Args:
            block: The product.
            steps: The outermost loop along the sum, and that of products of tiles.
            packed: The operands in panels.
            rest: The level of the remainder of each axis that has one.
        """
        draft, schedule = self._draft, self._draft.schedule
        first, tiles = steps
        schedule.annotate(tiles, KEY, 1)
        init = schedule.decompose_reduction(block, first)
        schedule.vectorize(draft.loops(init)[-1])
        draft.note(
            self._facts,
            self._columns,
            rest,
            self._product.column,
            packed=[1 + self._facts.reads.index(operand.read) for operand in packed],
            dot=DotGroup(self._depth // 2, is_tile=True),
        )
        draft.scheduled |= {self._facts.name, draft.block_name(init)}
