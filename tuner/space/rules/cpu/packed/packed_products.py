"""The rule that packs the operands of matrix products into panels, as BLIS does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compiler.backends.cpu.codegen.emitters.matrix_tiles import ROWS
from compiler.backends.cpu.codegen.operations.dot_instructions import FOUR, DotGroup
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.busy_cores import MIN_SHARED_POINTS, idle_counts
from tuner.space.analysis.product_roles import Product, find_product
from tuner.space.rules.cpu.cache_sets import fits_sets
from tuner.space.rules.cpu.flat_columns import PIXELS
from tuner.space.rules.cpu.matrix_vector import dots_forks, is_streamed_best
from tuner.space.rules.cpu.packed.operand_panels import MIN_ROWS, OperandPanels
from tuner.space.rules.cpu.packed.scaled_groups import scaled_groups
from tuner.space.rules.cpu.packed.unpacked_weights import unpacked_periods
from tuner.space.rules.cpu.padded_tiles import MAX_WASTE, has_no_tile, vector_sizes
from tuner.space.rules.cpu.step_groups import pad_steps, step_group
from tuner.space.rules.cpu.tile_registers.matrix_tiles import tile_forks
from tuner.space.rules.cpu.transposed_products import TRANSPOSED, is_narrow, transpose_product
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.rules.winograd_tiles import WINOGRAD
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_UNROLLED_STEPS = 8
"""Steps of the sum in an unrolled body: fewer loop instructions against longer code. Chosen."""
MAX_UNROLLED_GROUPS = 4
"""The same in dot products of a few steps each: four of four bytes are 16 steps. Chosen."""
MAX_SMALL_POINTS = 1 << 18
"""Products of at most this many multiply-adds also have a sketch without copies, which may cost
more than they save. Chosen: 64 x 64 x 64. So do products of fewer than `MIN_ROWS` rows.
"""
MAX_WHOLE_STEPS = 2048
"""Sums of at most this many steps may be computed without blocks of steps: panels of longer sums
exceed the second-level cache. Chosen.
"""
_BLOCKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Options for the number of tiles in a block of rows or columns; denser for small numbers, where a
step matters more. Chosen.
"""
_WIDE_BLOCKS = (1, 2, 4, 8)
"""The same for blocks whose tiles are wide. Chosen."""
MIN_TILE = 3
"""If no number of unpacked rows from here to the registers divides all of them, the last tile is
partial: with smaller tiles, multiply-adds wait for each other. Chosen.
"""
_OUTER, _ROWS, _STEPS, _PANELS, _INNER, _UNROLLED, _TILE = range(NUM_LEVELS)


@dataclass(frozen=True)
class _Variant:
    """The packed operands, and whether the sum is cut into blocks."""

    name: str
    is_left_packed: bool
    is_cut: bool


_VARIANTS = (
    _Variant("packed", is_left_packed=True, is_cut=True),
    _Variant("packed_right", is_left_packed=False, is_cut=True),
    _Variant("packed_whole", is_left_packed=True, is_cut=False),
    _Variant("packed_right_whole", is_left_packed=False, is_cut=False),
)


class PackedProducts:
    """Multiplies matrices packed into panels, in the order of use.

    The loops are those of Van Zee and van de Geijn, "BLIS: a framework for rapidly instantiating
    BLAS functionality" (ACM TOMS 2015). Tiles need not divide the extents: panels are padded.

        for j0, k0 in ...:  # j0 parallel, or i0 if there are more rows than columns
            B' = B[k0, j0] in panels of 16 columns
            for i0 in ...:
                A' = A[i0, k0] in panels of 6 rows
                for j1, i1, k1 in ...:
                    for k2, i2 in ...:  # unrolled
                        for j2 in ...:  # vectorized
                            C[...] += A'[i1, k1, i2] * B'[j1, k1, j2]

    Tiles of few columns are whole rows of them, which end in shorter vectors: `vector_sizes`.
    Another variant packs only `B`; if no good tile divides the rows, the last one is partial. An
    elementwise consumer runs on each register tile if the sum is not cut into blocks. Otherwise it
    runs on the finished columns.

    If the CPU has dot products of the operands' types, panels hold groups of neighbours along the
    sum, `B'[j1, k1, j2, k2]`, as the instructions take them. If groups do not divide the sum, the
    panels of both operands are padded with zeros. Rows of bytes have groups already, so that only
    `B` is packed: 400 x 384 x 384 takes two thirds of the time (one core of a Zen 4).
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Fork for each variant of every product."""
        draft = scaled_groups(draft)
        drafts = [draft]
        for name, facts in draft.block_facts().items():
            product = find_product(facts)
            if product is not None and name not in draft.scheduled:
                rows = facts.axes[product.row].extent
                is_small = facts.points <= MAX_SMALL_POINTS or rows < MIN_ROWS
                is_small = is_small and WINOGRAD not in draft.tags
                drafts = [fork for d in drafts for fork in _forks(d, name, product, is_small)]
        return drafts


def _forks(
    draft: SketchBuilder, name: str, product: Product, is_small: bool
) -> list[SketchBuilder]:
    """Return a draft for each variant, and the unchanged draft if packing may not pay."""
    facts = draft.block_facts()[name]
    if is_streamed_best(draft, facts):
        return [draft]
    steps = facts.axes[product.step].extent
    group = step_group(draft, facts, product.left.read, product.right.read)
    is_padded = steps % group.size > 0
    forks = tile_forks(draft, facts, product)
    if forks and facts.axes[product.row].extent >= ROWS:
        return forks  # whole tiles multiply many times as much in a cycle as vectors do
    has_groups = group.size == FOUR and not is_padded and _has_groups(draft, facts, product)
    for variant in _variants(draft, steps):
        if is_padded and not variant.is_left_packed:
            continue  # the left operand is padded in its panels
        if has_groups and variant.is_left_packed:
            continue  # panels have the same groups, and cost a copy
        tags = {"packed_right", *(["packed_left"] if variant.is_left_packed else [])}
        fork = draft.fork(variant.name, *tags)
        try:
            padded = pad_steps(fork, facts, product, group.size)
            _Packing(fork, *padded, variant, group, is_padded=is_padded).run()
        except ScheduleError:
            continue  # the program has other schedules
        forks.append(fork)
    if group.size == 1:
        forks += _transposed_forks(draft, facts, product)
    if forks and not is_small:
        forks += dots_forks(draft, facts)
    return [*forks, draft] if is_small or not forks else forks


def _has_groups(draft: SketchBuilder, facts: BlockFacts, product: Product) -> bool:
    """Return whether the left operand is read as well where it is as in panels of groups.

    The elements of a group are neighbours in its rows, and the caches hold a line of each row.
    """
    left = product.left.read
    row_bytes = left.strides[product.row] * left.item_bytes
    return left.strides[product.step] == 1 and fits_sets(facts.axes[product.row].extent, row_bytes)


def _transposed_forks(
    draft: SketchBuilder, facts: BlockFacts, product: Product
) -> list[SketchBuilder]:
    """Return drafts of the transposed product, if few columns leave vectors mostly empty."""
    steps = facts.axes[product.step].extent
    is_suited = steps <= MAX_WHOLE_STEPS and WINOGRAD not in draft.tags
    if not is_suited or not is_narrow(facts, product, draft.cpu):
        return []
    forks = []
    for variant in (variant for variant in _VARIANTS if not variant.is_cut):
        if PIXELS in draft.tags and not variant.is_left_packed:
            continue  # neighbouring pixels of a channel are rows, so a step would jump
        tags = {"packed_right", *(["packed_left"] if variant.is_left_packed else [])}
        fork = draft.fork(TRANSPOSED, *tags).fork(variant.name)
        try:
            parts = transpose_product(fork, facts, product)
            if parts is None:
                return []
            new_facts, new_product, copy = parts
            _Packing(
                fork, new_facts, new_product, variant, DotGroup(), is_padded=False, copy=copy
            ).run()
        except ScheduleError:
            continue  # the program has other schedules
        forks.append(fork)
    return forks


def _variants(draft: SketchBuilder, steps: int) -> Iterator[_Variant]:
    """Yield the variants of a product of so many steps; fewer for a convolution's sketches.

    The alternative to these is the convolution itself, so sums are cut into blocks only if they are
    long. The left operand of Winograd's tiles has just been written row by row.
    """
    is_whole = steps <= MAX_WHOLE_STEPS
    for variant in _VARIANTS:
        if WINOGRAD in draft.tags:
            is_suited = not variant.is_left_packed and variant.is_cut != is_whole
        elif PIXELS in draft.tags:
            is_suited = variant.is_cut != is_whole
        else:
            is_suited = variant.is_cut or is_whole
        if is_suited:
            yield variant


class _Packing:
    """Schedules one product in one draft."""

    def __init__(
        self,
        draft: SketchBuilder,
        facts: BlockFacts,
        product: Product,
        variant: _Variant,
        dot: DotGroup,
        *,
        is_padded: bool,
        copy: str | None = None,
    ) -> None:
        self._draft = draft
        self._copy = copy
        self._facts = facts
        self._product = product
        self._variant = variant
        self._dot = dot
        self._group = dot.size
        self._periods = unpacked_periods(draft, product.right) if dot.size == 1 else ()
        self._panels = OperandPanels(
            draft, facts, product, draft.dtypes(), dot.size, self._periods, is_padded
        )
        self._shared = self._shared_axis()
        self._columns: dict[int, dict[int, int]] = {}

    def run(self) -> None:
        """Schedule the block, its copies, and its consumer."""
        draft, product, schedule = self._draft, self._product, self._draft.schedule
        extent = self._facts.axes[product.step].extent
        block = schedule.get_block(self._facts.name)
        loops = draft.loops(block)
        rows, height = self._rows(loops[product.row])
        columns, width = self._tiles(loops[product.column], product.column, (_OUTER, _PANELS))
        steps = self._steps(loops[product.step])
        batch = [loop for i, loop in enumerate(loops) if i not in product.tiled]
        order = [columns[0], *steps[:-2], rows[0], columns[1], rows[1], *steps[-2:]]
        schedule.reorder(*batch, *order, rows[2], columns[2])
        blocks = (steps[0] if self._variant.is_cut else columns[0], rows[0])
        self._epilogue(block, (columns[0], rows[1]), (height, width))
        self._panels.pack_right(block, blocks[0], width)
        if self._variant.is_left_packed:
            self._panels.copy(block, product.left, blocks[1], height)
        for loop in (steps[-1], rows[2]):
            schedule.unroll(loop)
        schedule.vectorize(columns[2])
        shared = columns[0] if self._shared == product.column else rows[0]
        draft.parallelize(batch or [shared])
        self._note(batch)
        if self._variant.is_cut and extent <= MAX_WHOLE_STEPS and "fused" not in draft.tags:
            draft.exclude(self._columns[product.step][_STEPS], 1)  # as in the variant of one go

    def _shared_axis(self) -> int | None:
        """Return the axis whose blocks run on different threads.

        It is None if threads run different batch elements, or with a single thread. Threads that
        share columns each pack what they read. For threads that share rows, one packs the right
        operand for all. The cost of that falls with the number of rows, and no left operand is
        packed twice.
        """
        product, axes = self._product, self._facts.axes
        if self._draft.target.num_cores == 1 or len(axes) > len(product.tiled):
            return None
        has_more_rows = axes[product.row].extent > axes[product.column].extent
        return product.row if has_more_rows else product.column

    def _even_counts(self) -> list[int]:
        """Return the numbers of blocks of an axis that give all threads equally many."""
        return [n * self._draft.target.num_cores for n in _WIDE_BLOCKS]

    def _rows(self, loop: LoopRV) -> tuple[list[LoopRV], ExprRV]:
        row = self._product.row
        if self._variant.is_left_packed:
            return self._tiles(loop, row, (_ROWS, _PANELS))
        extent = self._facts.axes[row].extent
        most = self._most_pairs() if WINOGRAD in self._draft.tags else self._most_rows()
        if has_no_tile(extent, MIN_TILE, most):
            return self._tiles(loop, row, (_ROWS, _PANELS))
        # Unpacked rows have no padding, so a tile that divides them needs no guard.
        factors, first = self._draft.tile(loop, extent, 3, self._most_rows())
        levels = (_ROWS, _PANELS, _TILE)
        self._columns[row] = {level: first + n for n, level in enumerate(levels)}
        if row == self._shared and self._facts.points >= MIN_SHARED_POINTS:
            for count in idle_counts(extent, self._draft.target.num_cores, MIN_TILE, most):
                self._draft.exclude(first, count)
        return list(self._draft.schedule.split(loop, factors)), factors[-1]

    def _tiles(
        self, loop: LoopRV, axis: int, levels: tuple[int, int]
    ) -> tuple[list[LoopRV], ExprRV]:
        """Cut an axis into blocks of panels of tiles; round the number of panels up."""
        draft, extent = self._draft, self._facts.axes[axis].extent
        is_column = axis == self._product.column
        sizes = self._widths(extent) if is_column else self._heights(extent)
        limit = -(-extent // sizes[0])
        counts = [n for n in (_WIDE_BLOCKS if is_column else _BLOCKS) if n <= limit]
        if axis == self._shared:
            counts = [n for n in self._even_counts() if n <= limit] or counts
        count, first = draft.choose(counts)
        size, last = draft.choose(sizes)
        self._columns[axis] = {levels[0]: first, _TILE: last}
        return list(draft.schedule.split(loop, [count, None, size])), size

    def _steps(self, loop: LoopRV) -> list[LoopRV]:
        if self._periods:
            return self._whole_groups(loop)
        step = self._product.step
        levels = (_STEPS, _INNER, _UNROLLED) if self._variant.is_cut else (_INNER, _UNROLLED)
        extent = self._facts.axes[step].extent
        longest = MAX_UNROLLED_STEPS if self._group == 1 else MAX_UNROLLED_GROUPS * self._group
        factors, first = self._draft.tile(loop, extent, len(levels), longest)
        self._columns[step] = {level: first + n for n, level in enumerate(levels)}
        for size in divisors(extent):
            if size <= longest and size % self._group:
                self._draft.exclude(self._columns[step][_UNROLLED], size)
        return list(self._draft.schedule.split(loop, factors))

    def _whole_groups(self, loop: LoopRV) -> list[LoopRV]:
        """Cut the sum into blocks of whole groups of weights that are unpacked together."""
        schedule, draft, step = self._draft.schedule, self._draft, self._product.step
        size = self._periods[0]
        num_groups = self._facts.axes[step].extent // size
        groups, in_group = schedule.split(loop, [None, size])
        factors, inner = draft.tile(in_group, size, 2, MAX_UNROLLED_STEPS)
        unrolled = schedule.split(in_group, factors)
        columns = {_INNER: inner, _UNROLLED: inner + 1}
        outer: list[LoopRV] = []
        if self._variant.is_cut:
            factors, columns[_STEPS] = draft.tile(groups, num_groups, 2, num_groups)
            first, groups = schedule.split(groups, factors)
            outer = [first]
        self._columns[step] = columns
        return [*outer, schedule.fuse(groups, unrolled[0]), unrolled[1]]

    def _most_rows(self) -> int:
        # Accumulators, a vector of the right operand, and an element of the left one.
        return self._draft.cpu.num_vector_registers - 2

    def _most_pairs(self) -> int:
        """Return the maximum of rows whose sums are two vectors each.

        Winograd's tiles are few. A tile of 7 rows and one vector, such as 49 of them allow, has two
        instructions for each multiply-add, and waits for the decoder.
        """
        return (self._draft.cpu.num_vector_registers - 3) // 2

    def _heights(self, extent: int) -> tuple[int, ...]:
        sizes = range(1, min(self._most_rows(), extent) + 1)
        wastes = {size: -(-extent // size) * size / extent for size in sizes}
        long = [size for size in sizes if wastes[size] <= MAX_WASTE and size > 2]
        return tuple(long or sizes)

    def _widths(self, extent: int) -> tuple[int, ...]:
        sizes = vector_sizes(extent, self._panels.lanes)
        whole = tuple(size for size in sizes if extent % size == 0)
        return whole if whole and self._panels.are_written_by_transform else sizes

    def _epilogue(
        self, block: BlockRV, around: tuple[LoopRV, LoopRV], tile: tuple[ExprRV, ExprRV]
    ) -> None:
        """Run a consumer on each finished tile, or on the finished columns.

        It is elementwise, or transposes the result.
        """
        draft, schedule = self._draft, self._draft.schedule
        epilogue = self._copy or elementwise_consumer(draft, self._facts)
        if epilogue is None:
            return
        consumer = schedule.get_block(epilogue)
        loop = around[0] if self._variant.is_cut else around[1]
        schedule.reverse_compute_at(consumer, loop, preserve_unit_loops=True)
        spatial = [i for i, axis in enumerate(self._facts.axes) if not axis.is_reduction]
        loops = dict(zip(spatial, draft.loops(consumer)[-len(spatial) :], strict=True))
        row, column = loops[self._product.row], loops[self._product.column]
        schedule.reorder(row, column)
        if not self._variant.is_cut:
            schedule.unroll(row)
        schedule.vectorize(column)
        draft.scheduled.add(epilogue)
        draft.tags |= {"fused"}

    def _note(self, batch: list[LoopRV]) -> None:
        """Record the columns of the decisions, for the tables of features."""
        draft, product, facts = self._draft, self._product, self._facts
        columns: list[tuple[int | None, ...]] = []
        remainder_levels: list[int | None] = []
        for axis in range(len(facts.axes)):
            axis_columns = self._columns.get(axis, {})
            columns.append(tuple(axis_columns.get(level) for level in range(NUM_LEVELS)))
            is_left_over = axis in (product.row, product.column) and _PANELS not in axis_columns
            is_in_groups = axis == product.step and bool(self._periods)
            remainder = _PANELS if is_left_over else _INNER if is_in_groups else None
            remainder_levels.append(remainder if axis_columns else _OUTER)
        reads = (product.right, *([product.left] if self._variant.is_left_packed else []))
        packed = frozenset(1 + facts.reads.index(operand.read) for operand in reads)
        draft.nests.append(
            TiledNest(
                facts,
                tuple(columns),
                tuple(remainder_levels),
                product.column,
                packed,
                dot=self._dot,
            )
        )
        draft.scheduled.add(facts.name)
