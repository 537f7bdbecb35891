"""Sketches of products in the tile registers of a CPU (AMX); see `MatrixTiles` of the emitters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.backends.cpu.codegen.emitters.group_copies import KEY as COPY_KEY
from compiler.backends.cpu.codegen.emitters.group_copies import WORD_BYTES
from compiler.backends.cpu.codegen.emitters.matrix_tiles import (
    KEY,
    MAX_TILES,
    ROW_BYTES,
    ROWS,
    multiplies_tiles,
)
from compiler.backends.cpu.codegen.operations.dot_instructions import DotGroup
from compiler.passes.common.tile_buffers import KEY as LAYOUT_KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.operand_roles import dimension
from tuner.space.analysis.product_roles import Operand, Product
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.cpu.step_groups import inline_producer, pad_steps
from tuner.space.rules.epilogue import elementwise_consumer, epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_BLOCKS = 128
"""Limit of the blocks of columns: the panels of one should stay in the second-level cache. Chosen.
"""
MAX_BLOCK_WASTE = 1.05
"""Limit of the panels in blocks of equally many, as a multiple of those with columns. Chosen."""
MAX_LEFT_SHARE = 0.5
"""A left operand up to this share of the second-level cache is packed once, before all loops, and
not for each block of columns. Chosen.
"""
ROW_BLOCKS = (1, 2, 4, 8, 16, 32)
"""Options for the tiles in a block of rows. A panel of columns stays in the first-level cache for
several of them; a single one stays there itself. Chosen.
"""
MIN_ROWS = 8
"""Fewer rows leave more than half of a tile empty. Chosen."""
MIN_CUT_BYTES = 1024
"""Longer rows of an operand may be used in blocks of steps: 32 of them fill two thirds of a
first-level cache of 48 KiB. Chosen.
"""
CUTS = (8, 12, 16, 24, 32)
"""Options for the products of tiles in a block of steps: 16 of them are 32 KiB of 32 rows. The
static filter drops blocks of fewer than 512 steps. Chosen.
"""
_OUTER, _ROWS, _STEPS, _PANELS, _INNER, _VECTOR = 0, 1, 2, 3, 4, 6


@dataclass(frozen=True)
class _TileVariant:
    """Whether the left operand is packed, and whether the sum is cut into blocks."""

    name: str
    is_left_packed: bool
    is_cut: bool


_VARIANTS = (
    _TileVariant("matrix_tiles", is_left_packed=False, is_cut=False),
    _TileVariant("matrix_tiles_packed", is_left_packed=True, is_cut=False),
    _TileVariant("matrix_tiles_cut", is_left_packed=True, is_cut=True),
)


def tile_forks(draft: SketchBuilder, facts: BlockFacts, product: Product) -> list[SketchBuilder]:
    """Return drafts of a product by tile registers, if the CPU has them for its types.

    for j0 in ...:  # parallel, or i0 if there are more rows than columns
        B' = B[j0] in panels of 32 columns, groups of neighbours along the sum
        for i0 in ...:
            A' = A[i0] in panels of 32 rows and 64 bytes of each
            for j1, i1 in ...:
                C[...] = 0
                for k0 in ...:  # matrix_tiles
                    for k1, k2, i2 in ...:
                        for j2 in ...:  # vectorized, without tile registers
                            C[...] += A'[i1, k0, i2, k1, k2] * B'[j1, k0, k1, j2, k2]
                an elementwise consumer of C[...]

    Tiles need not divide the extents: panels are padded. If they divide the rows and the sum, the
    left operand may be read where it is. A sum may be cut into blocks, with loops around `i0`.
    """
    dtypes = draft.dtypes()
    accesses = (product.left.read, product.right.read, facts.write)
    types = (dtypes[access.buffer] for access in accesses)
    if not multiplies_tiles(draft.cpu, *types) or facts.axes[product.row].extent < MIN_ROWS:
        return []
    forks = []
    for variant in _variants(facts, product):
        fork = draft.fork(variant.name, "matrix_tiles")
        depth = ROW_BYTES // product.left.read.item_bytes
        try:
            padded = pad_steps(fork, facts, product, depth)
            _Tiles(fork, *padded, variant, is_padded=padded[0] is not facts).run()
        except ScheduleError:
            continue  # the program has other schedules
        forks.append(fork)
    return forks


def _variants(facts: BlockFacts, product: Product) -> Iterator[_TileVariant]:
    """Yield the variants that suit the extents of a product."""
    rows, steps = (facts.axes[axis].extent for axis in (product.row, product.step))
    depth = ROW_BYTES // product.left.read.item_bytes
    is_divisible = rows % ROWS == 0 and steps % depth == 0
    is_in_place = is_divisible and product.left.read.strides[product.step] == 1
    for variant in _VARIANTS:
        if variant.is_cut:
            is_long = steps * product.left.read.item_bytes > MIN_CUT_BYTES
            is_suited = is_long and bool(_cuts(-(-steps // depth)))
        else:
            is_suited = variant.is_left_packed or is_in_place
        if is_suited:
            yield variant


def _cuts(num_products: int) -> list[int]:
    """Return the options for the products of tiles in a block of steps."""
    return [n for n in CUTS if n < num_products and num_products % n == 0]


class _Tiles:
    """Schedules one product in one draft."""

    def __init__(
        self,
        draft: SketchBuilder,
        facts: BlockFacts,
        product: Product,
        variant: _TileVariant,
        *,
        is_padded: bool,
    ) -> None:
        self._draft = draft
        self._facts = facts
        self._product = product
        self._variant = variant
        self._is_padded = is_padded
        self._depth = ROW_BYTES // product.left.read.item_bytes
        self._columns: dict[int, dict[int, int]] = {}

    def run(self) -> None:
        """Schedule the block, its copies, and its consumer."""
        draft, product, schedule = self._draft, self._product, self._draft.schedule
        block = schedule.get_block(self._facts.name)
        loops = draft.loops(block)
        group = WORD_BYTES // product.left.read.item_bytes
        (i0, i1, i2), height = self._rows(loops[product.row])
        (j0, j1, j2), width = self._panels(loops[product.column])
        *cut, k0, k1, k2 = self._steps(loops[product.step], group)
        batch = [loop for axis, loop in enumerate(loops) if axis not in product.tiled]
        schedule.reorder(*batch, j0, *cut, i0, j1, i1, k0, k1, k2, i2, j2)
        self._epilogue(block, j0 if cut else i1, (height, width))
        self._pack(block, product.right, [*cut, j0][0], width, group)
        if self._variant.is_left_packed:
            around = i0 if self._has_block_panels() else None
            self._pack(block, product.left, around, height, self._depth)
        schedule.vectorize(j2)
        schedule.annotate(k0, KEY, 1)
        draft.parallelize(batch or [i0 if self._shares_rows() else j0])
        init = schedule.decompose_reduction(block, [*cut, k0][0])
        schedule.vectorize(draft.loops(init)[-1])
        rest = {product.row: _ROWS, product.column: _PANELS, product.step: _INNER}
        if self._variant.is_cut:
            rest[product.step] = _STEPS
        reads = (product.right, *([product.left] if self._variant.is_left_packed else []))
        draft.note(
            self._facts,
            self._columns,
            rest,
            product.column,
            packed=[1 + self._facts.reads.index(operand.read) for operand in reads],
            dot=DotGroup(self._depth // 2, is_tile=True),
        )
        draft.scheduled |= {self._facts.name, draft.block_name(init)}

    def _shares_rows(self) -> bool:
        """Return whether threads share the rows, so that one packs the right operand for all."""
        rows, columns = (self._facts.axes[axis].extent for axis in self._product.tiled[:2])
        return rows > columns

    def _rows(self, loop: LoopRV) -> tuple[list[LoopRV], ExprRV]:
        draft, extent = self._draft, self._facts.axes[self._product.row].extent
        sizes = self._sizes(extent)
        counts = [n for n in ROW_BLOCKS if n <= -(-extent // sizes[0])]
        if not self._has_block_panels():
            # Blocks have no tile beyond the last one: the left operand has no room for it.
            is_packed = self._variant.is_left_packed
            sizes = [size for size in sizes if is_packed or extent % size == 0][:1]
            num_tiles = -(-extent // sizes[0])
            counts = [n for n in (*ROW_BLOCKS, num_tiles) if num_tiles % n == 0]
        count, first = draft.choose(list(dict.fromkeys(counts)))
        size, last = draft.choose(sizes)
        self._columns[self._product.row] = {_PANELS: first, _VECTOR: last}
        return list(draft.schedule.split(loop, [None, count, size])), size

    def _has_block_panels(self) -> bool:
        """Return whether each block of rows is packed for itself, not all rows before them."""
        size_bytes = self._product.left.read.size_bytes
        is_small = size_bytes <= MAX_LEFT_SHARE * self._draft.cpu.l2_bytes
        return self._variant.is_left_packed and not is_small

    def _panels(self, loop: LoopRV) -> tuple[list[LoopRV], ExprRV]:
        draft, extent = self._draft, self._facts.axes[self._product.column].extent
        sizes = self._sizes(extent)
        count, first = draft.choose(self._block_counts(-(-extent // sizes[0])))
        size, last = draft.choose(sizes)
        self._columns[self._product.column] = {_OUTER: first, _VECTOR: last}
        return list(draft.schedule.split(loop, [count, None, size])), size

    def _block_counts(self, num_panels: int) -> list[int]:
        """Return the options for the number of blocks of columns."""
        powers = (1 << n for n in range(MAX_BLOCKS.bit_length()))
        counts = sorted({*powers, *divisors(num_panels)})
        num_cores = 1 if self._shares_rows() else self._draft.cpu.num_cores
        return [
            n
            for n in counts
            if n <= min(num_panels, MAX_BLOCKS)
            and n % num_cores == 0
            and -(-num_panels // n) * n <= MAX_BLOCK_WASTE * num_panels
        ] or [1]

    def _steps(self, loop: LoopRV, group: int) -> list[LoopRV]:
        """Split the loop of the sum by blocks of steps, products of tiles, and groups in them."""
        draft, step = self._draft, self._product.step
        tile = [self._depth // group, group]
        if not self._variant.is_cut:
            return list(draft.schedule.split(loop, [None, *tile]))
        sizes = _cuts(self._facts.axes[step].extent // self._depth)
        size, column = draft.scaled(sizes, self._depth)
        self._columns[step] = {_INNER: column}
        return list(draft.schedule.split(loop, [None, size, *tile]))

    def _sizes(self, extent: int) -> list[int]:
        return list(padded_sizes(extent, [n * ROWS for n in range(MAX_TILES, 0, -1)]))

    def _epilogue(self, block: BlockRV, loop: LoopRV, sizes: tuple[ExprRV, ExprRV]) -> None:
        """Run a consumer on each finished block of tiles, or on the finished columns.

        The sums then lie in tiles of so many rows and columns, with room for what is padded.
        """
        draft, schedule, product = self._draft, self._draft.schedule, self._product
        units = (product.row, product.column)
        is_padded = any(self._facts.axes[axis].extent % ROWS for axis in units)
        if not is_padded and elementwise_consumer(draft, self._facts) is None:
            return
        consumer = epilogue_of(draft, self._facts, "global")
        layout: list[int | ExprRV] = [0]
        for axis, size in zip(units, sizes, strict=True):
            dim = dimension(self._facts.write, axis)
            assert dim is not None, "an index of the output is the axis"
            layout += [dim, size]
        schedule.annotate(block, LAYOUT_KEY, layout)
        schedule.reverse_compute_at(consumer, loop, preserve_unit_loops=True)
        spatial = [i for i, axis in enumerate(self._facts.axes) if not axis.is_reduction]
        loops = dict(zip(spatial, draft.loops(consumer)[-len(spatial) :], strict=True))
        schedule.reorder(loops[product.row], loops[product.column])
        schedule.vectorize(loops[product.column])
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
        if self._is_padded:
            inline_producer(draft, operand.read.buffer)
        if loop is not None:
            schedule.compute_at(copy, loop, preserve_unit_loops=True)
        loops = draft.loops(copy)[-len(operand.read.shape) :]
        panels, lane = schedule.split(loops[operand.across], [None, tile])
        groups, along = schedule.split(loops[operand.along], [None, group])
        if operand.read.strides[self._product.step] == 1:
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
