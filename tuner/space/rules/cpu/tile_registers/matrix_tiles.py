"""Sketches of products in the tile registers of a CPU (AMX); see `MatrixTiles` of the emitters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.backends.cpu.codegen.emitters.matrix_tiles import (
    ROW_BYTES,
    ROWS,
    multiplies_tiles,
)
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.product_roles import Product
from tuner.space.rules.cpu.step_groups import pad_steps
from tuner.space.rules.cpu.tile_registers.tile_product import (
    INNER,
    PANELS,
    ROW_BLOCK,
    ROW_BLOCKS,
    STEPS,
    VECTOR,
    TileProduct,
    equal_blocks,
)
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_LEFT_SHARE = 0.5
"""A left operand up to this share of the second-level cache is packed once, before all loops, and
not for each block of columns. Chosen.
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


def tile_forks(
    draft: SketchBuilder, facts: BlockFacts, product: Product, run: int | None = None
) -> list[SketchBuilder]:
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

    Args:
        draft: The draft.
        facts: The facts of the block.
        product: Its roles.
        run: If rows of the left operand are gathered, the elements along the sum that lie side by
            side where they come from.
    """
    dtypes = draft.dtypes()
    accesses = (product.left.read, product.right.read, facts.write)
    types = (dtypes[access.buffer] for access in accesses)
    if not multiplies_tiles(draft.cpu, *types) or facts.axes[product.row].extent < MIN_ROWS:
        return []
    forks = []
    for variant in _variants(facts, product, is_gathered=run is not None):
        fork = draft.fork(variant.name, "matrix_tiles")
        depth = ROW_BYTES // product.left.read.item_bytes
        try:
            padded = pad_steps(fork, facts, product, depth)
            _MatrixTiles(fork, *padded, variant, is_padded=padded[0] is not facts, run=run).run()
        except ScheduleError:
            continue  # the program has other schedules
        forks.append(fork)
    return forks


def _variants(facts: BlockFacts, product: Product, *, is_gathered: bool) -> Iterator[_TileVariant]:
    """Yield the variants that suit the extents of a product."""
    rows, steps = (facts.axes[axis].extent for axis in (product.row, product.step))
    depth = ROW_BYTES // product.left.read.item_bytes
    is_divisible = rows % ROWS == 0 and steps % depth == 0
    is_in_place = is_divisible and not is_gathered and product.left.read.strides[product.step] == 1
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


class _MatrixTiles(TileProduct):
    """Schedules one product in one draft."""

    def __init__(
        self,
        draft: SketchBuilder,
        facts: BlockFacts,
        product: Product,
        variant: _TileVariant,
        *,
        is_padded: bool,
        run: int | None,
    ) -> None:
        super().__init__(draft, facts, product, is_padded=is_padded, run=run)
        self._variant = variant

    def run(self) -> None:
        """Schedule the block, its copies, and its consumer."""
        draft, product, schedule = self._draft, self._product, self._draft.schedule
        block = schedule.get_block(self._facts.name)
        loops = draft.loops(block)
        (i0, i1, i2), height = self._rows(loops[product.row])
        (j0, j1, j2), width = self._panels(loops[product.column])
        *cut, k0, k1, k2 = self._steps(loops[product.step])
        batch = [loop for axis, loop in enumerate(loops) if axis not in product.tiled]
        schedule.reorder(*batch, j0, *cut, i0, j1, i1, k0, k1, k2, i2, j2)
        sizes = {product.row: height, product.column: width}
        self._store_sums(block, j0 if cut else i1, sizes)
        self._pack(block, product.right, [*cut, j0][0], width, self._group)
        if self._variant.is_left_packed:
            around = i0 if self._has_block_panels() else None
            self._pack(block, product.left, around, height, self._depth)
        schedule.vectorize(j2)
        draft.parallelize(batch or [i0 if self._shares_rows() else j0])
        rest = {product.row: ROW_BLOCK, product.column: PANELS, product.step: INNER}
        if self._variant.is_cut:
            rest[product.step] = STEPS
        reads = (product.right, *([product.left] if self._variant.is_left_packed else []))
        self._end(block, ([*cut, k0][0], k0), reads, rest)

    def _rows(self, loop: LoopRV) -> tuple[list[LoopRV], ExprRV]:
        draft, extent = self._draft, self._facts.axes[self._product.row].extent
        sizes = self._sizes(extent)
        counts = [n for n in ROW_BLOCKS if n <= -(-extent // sizes[0])]
        if not self._has_block_panels():
            # Blocks have no tile beyond the last one: the left operand has no room for it.
            is_packed = self._variant.is_left_packed
            sizes = [size for size in sizes if is_packed or extent % size == 0][:1]
            counts = equal_blocks(-(-extent // sizes[0]))
        count, first = draft.choose(counts)
        size, last = draft.choose(sizes)
        self._columns[self._product.row] = {PANELS: first, VECTOR: last}
        return list(draft.schedule.split(loop, [None, count, size])), size

    def _has_block_panels(self) -> bool:
        """Return whether each block of rows is packed for itself, not all rows before them."""
        size_bytes = self._product.left.read.size_bytes
        is_small = size_bytes <= MAX_LEFT_SHARE * self._draft.cpu.l2_bytes
        return self._variant.is_left_packed and not is_small

    def _steps(self, loop: LoopRV) -> list[LoopRV]:
        """Split the loop of the sum by blocks of steps, products of tiles, and groups in them."""
        draft, step = self._draft, self._product.step
        tile = [self._depth // self._group, self._group]
        if not self._variant.is_cut:
            return list(draft.schedule.split(loop, [None, *tile]))
        sizes = _cuts(self._facts.axes[step].extent // self._depth)
        size, column = draft.scaled(sizes, self._depth)
        self._columns[step] = {INNER: column}
        return list(draft.schedule.split(loop, [None, size, *tile]))
