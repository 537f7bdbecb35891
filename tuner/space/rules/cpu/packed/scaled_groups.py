"""Sketches of products whose weights have a scale for each group of steps of the sum.

for g, i, j: P[g, i, j] = sum of A[i, g, b] * W[j, g, b] over b
for i, j:    C[i, j]    = sum of P[g, i, j] * scale[j, g] over g
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.nodes import Load, Store
from compiler.ir.core.visit import walk
from compiler.passes.common.tile_buffers import KEY
from compiler.passes.cpu.hoist_constants import KEY as EACH_RUN_KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess, sites
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.cpu.step_groups import step_group
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_STEPS = 2
"""Unrolled steps of each half of a group, as an instruction multiplies and adds them. Chosen."""
MAX_VECTORS = 4
"""Vectors in a row of a register tile: more leave too few registers for rows. Chosen."""
PANELS = 2
"""Panels of columns that share the rows of a group, in the first-level cache. All groups of 16 rows
of `bfloat16` take 128 KiB. On a Zen 5, 16 x 4096 x 4096 in tiles of 16 x 16 takes 0.8 of the time
of single panels, which read them from the second level. 4 to 16 panels are no faster.
"""
MIN_BLOCKS = 4
"""The minimum number of blocks of panels for each core, so that cores end at about the same time.
Chosen.
"""
MIN_TILE = 3
"""Rows of a tile, if a divisor of all rows has so many. Smaller ones unpack weights too often: on a
Zen 4, 4 x 4096 x 4096 takes 1.3 times as long in tiles of 2 rows as in one of 4, and 1.9 times in
single rows (`float32`; 1.2 and 1.7 times in `bfloat16`).
"""
_GROUP, _ROW, _COLUMN, _STEP = range(4)
_OUTER, _GROUPS, _PANELS, _INNER, _UNROLLED, _TILE = 0, 1, 3, 4, 5, 6


@dataclass(frozen=True)
class _ScaledGroups:
    """The blocks of a product in groups.

    Attributes:
        total: The sum over groups.
        partial: The sums of the groups, with the axes group, row, column and step.
        unpacking: The name of the block that unpacks the weights.
        left: The read of the rows by `partial`.
        right: The read of the unpacked weights by `partial`.
    """

    total: BlockFacts
    partial: BlockFacts
    unpacking: str
    left: TensorAccess
    right: TensorAccess


def scaled_groups(draft: SketchBuilder) -> SketchBuilder:
    """Return a fork with a product in groups in register tiles, or the draft without one.

        for j0 in ...:  # parallel
            for g, j1, i0 in ...:
                for b0 in ...:
                    for half in ...:                # unrolled: a byte has a weight of each
                        W'[...] = W[j0, j1, g, b0]  # unpacked in registers
                        for b1, i1 in ...:          # unrolled
                            for j2 in ...:          # vectorized
                                P[i1, j2] += A'[i0, g, half, b0, b1, i1] * W'[b1, j2]
                C[i0, i1, j1, j2] += P[i1, j2] * scale[j0, j1, g, j2]

    Weights of 4 bits are unpacked to floats, in pairs if the CPU's instructions for dot products
    take them; scales cost a multiply-add for each group.
    """
    groups = _find(draft)
    if groups is None:
        return draft
    fork = draft.fork("scaled_groups", "packed_right", "packed_left")
    try:
        _Groups(fork, groups).run()
    except ScheduleError:
        return draft  # the program has other schedules
    return fork


def _find(draft: SketchBuilder) -> _ScaledGroups | None:
    all_facts = draft.block_facts()
    for partial in all_facts.values():
        consumers = draft.consumers(partial.name)
        total = all_facts.get(consumers[0]) if len(consumers) == 1 else None
        if total is None or len(partial.axes) != _STEP + 1 or not _is_in_groups(partial, total):
            continue
        for left, right in (partial.reads, partial.reads[::-1]):
            is_product = not left.strides[_COLUMN] and not right.strides[_ROW]
            unpacking = _unpacking(draft, partial, right)
            if is_product and unpacking is not None:
                return _ScaledGroups(total, partial, unpacking, left, right)
    return None


def _is_in_groups(partial: BlockFacts, total: BlockFacts) -> bool:
    """Return whether a block sums all sums of groups, and nothing else."""
    read = next(read for read in total.reads if read.buffer == partial.write.buffer)
    group, row, column = (axis.extent for axis in partial.axes[:_STEP])
    return (
        [axis.is_reduction for axis in partial.axes] == [False, False, False, True]
        and [axis.is_reduction for axis in total.axes] == [False, False, True]
        and [axis.extent for axis in total.axes] == [row, column, group]
        and min(row, column) > 1
        and partial.is_affine
        and partial.is_multiply_add
        and len(partial.reads) == 2
        and partial.write.coefficients == ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0))
        and read.coefficients == ((0, 0, 1), (1, 0, 0), (0, 1, 0))
        and total.write.coefficients == ((1, 0, 0), (0, 1, 0))
    )


def _unpacking(draft: SketchBuilder, partial: BlockFacts, right: TensorAccess) -> str | None:
    """Return the block that unpacks `[column, group and step]` from bytes, if there is one."""
    steps = partial.axes[_STEP].extent
    is_matrix = right.coefficients == ((0, 0, 1, 0), (steps, 0, 0, 1))
    for name, facts in draft.block_facts().items():
        if facts.write.buffer == right.buffer and is_matrix and not facts.is_reduction:
            is_alone = draft.consumers(name) == [partial.name] and len(facts.reads) == 1
            return name if is_alone and facts.reads[0].item_bytes == 1 else None
    return None


class _Groups:
    """Schedules one product in groups in a draft."""

    def __init__(self, draft: SketchBuilder, groups: _ScaledGroups) -> None:
        self._draft = draft
        self._groups = groups
        self._dot = step_group(draft, groups.partial, groups.left, groups.right)

    def run(self) -> None:
        """Schedule the sums, the unpacked weights, the copies and the consumer."""
        draft, groups, schedule = self._draft, self._groups, self._draft.schedule
        epilogue = elementwise_consumer(draft, groups.total)
        total = schedule.get_block(groups.total.name)
        partial = schedule.get_block(groups.partial.name)
        row, column, group = draft.loops(total)
        height, first_row = draft.choose(self._heights())
        widths = self._widths()
        width, first_column = draft.choose(widths)
        panels = self._panels(max(widths))
        rows = schedule.split(row, [None, height])
        columns = schedule.split(column, [None, panels, width])
        schedule.reorder(columns[0], group, columns[1], rows[0], rows[1], columns[2])
        if epilogue is not None:
            consumer = schedule.get_block(epilogue)
            schedule.reverse_compute_at(consumer, columns[0], preserve_unit_loops=True)
            schedule.vectorize(draft.loops(consumer)[-1])
            draft.scheduled.add(epilogue)
        schedule.compute_at(partial, rows[0], preserve_unit_loops=True)
        half, first_step = self._tile(partial)
        self._unpack(half, width)
        self._copy_rows(partial, height)
        schedule.unroll(rows[1])
        schedule.vectorize(columns[2])
        draft.parallelize([columns[0]])
        init = schedule.decompose_reduction(total, group)
        schedule.vectorize(draft.loops(init)[-1])
        draft.scheduled |= {groups.total.name, groups.partial.name, draft.block_name(init)}
        self._note((first_row, first_column, first_step))

    def _tile(self, partial: BlockRV) -> tuple[LoopRV, int]:
        """Order the loops of the sums of a group, which stay in registers.

        Returns:
            The loop over the halves of a group, and the column of the steps in a half.
        """
        draft, schedule = self._draft, self._draft.schedule
        group, row, column, step = draft.loops(partial)[-4:]
        half, steps = schedule.split(step, [2, None])
        extent = self._groups.partial.axes[_STEP].extent // 2
        longest = MAX_STEPS * self._dot.size
        factors, first = draft.tile(steps, extent, 2, longest)
        for size in divisors(extent):
            if size <= longest and size % self._dot.size:
                draft.exclude(first + 1, size)
        outer, inner = schedule.split(steps, factors)
        schedule.reorder(group, outer, half, inner, row, column)
        for loop in (half, inner, row):
            schedule.unroll(loop)
        schedule.vectorize(column)
        return half, first

    def _unpack(self, half: LoopRV, width: ExprRV) -> None:
        """Unpack the weights of some steps in registers, and pack what they are made of."""
        draft, schedule, size = self._draft, self._draft.schedule, self._dot.size
        block = schedule.get_block(self._groups.unpacking)
        self._pack_sources(block, width, size)
        self._pack_sources(schedule.get_block(self._groups.total.name), width, None)
        schedule.compute_at(block, half, preserve_unit_loops=True)
        column, step = draft.loops(block)[-2:]
        panels, lane = schedule.split(column, [None, width])
        steps, part = schedule.split(step, [None, size])
        schedule.reorder(panels, steps, lane, part)
        schedule.unroll(steps)
        schedule.vectorize(schedule.fuse(lane, part))
        schedule.annotate(block, KEY, [0, 0, width, 1, size])
        schedule.annotate(block, EACH_RUN_KEY, 1)
        draft.scheduled.add(self._groups.unpacking)

    def _pack_sources(self, block: BlockRV, width: ExprRV, size: int | None) -> None:
        """Copy the constants that a block reads into panels, once; with groups of bytes or not."""
        draft = self._draft
        name, constants = draft.block_name(block), constant_params(draft.schedule.func)
        site = next(site for site in sites(draft.schedule.func) if site.block.name == name)
        assert isinstance(site.block.body, Store), "`_find` takes blocks with one statement"
        loads = {n.buffer: n for n in walk(site.block.body) if isinstance(n, Load)}
        for buffer in loads:
            if buffer in constants:
                copy = draft.copy_input(block, buffer.name)
                inner = [] if size is None else [len(buffer.shape) - 1, size]
                draft.schedule.annotate(copy, KEY, [0, 0, width, *inner])
                draft.scheduled.add(draft.block_name(copy))

    def _copy_rows(self, partial: BlockRV, height: ExprRV) -> None:
        """Copy the left operand into panels of rows, with the parts of a dot product together."""
        draft, schedule, size = self._draft, self._draft.schedule, self._dot.size
        copy = draft.copy_input(partial, self._groups.left.buffer)
        row, step = draft.loops(copy)
        panels, lane = schedule.split(row, [None, height])
        steps, part = schedule.split(step, [None, size])
        schedule.reorder(panels, steps, lane, part)
        schedule.vectorize(part)
        schedule.annotate(copy, KEY, [0, 0, height, 1, size])
        draft.scheduled.add(draft.block_name(copy))

    def _heights(self) -> list[int]:
        rows = self._groups.partial.axes[_ROW].extent
        most = self._draft.cpu.num_vector_registers - 2
        tiles = [size for size in divisors(rows) if MIN_TILE <= size <= most]
        even = -(-rows // -(-rows // most))  # the last tile may be partial
        return tiles[::-1] or [even]

    def _widths(self) -> tuple[int, ...]:
        lanes = max(1, self._draft.cpu.vector_bits // 32)
        columns = self._groups.partial.axes[_COLUMN].extent
        sizes = [n * lanes for n in range(1, MAX_VECTORS + 1) if (n - 1) * lanes < columns]
        # The last panel would be partial: 16 x 4096 x 4096 takes 1.3 times as long in tiles of 48.
        whole = [size for size in sizes if columns % size == 0]
        return padded_sizes(columns, whole if max(whole, default=0) > lanes else sizes)

    def _panels(self, width: int) -> int:
        """Return the panels in a block of columns; whole blocks divide all columns."""
        columns = self._groups.partial.axes[_COLUMN].extent
        blocks, rest = divmod(columns, PANELS * width)
        return PANELS if not rest and blocks >= MIN_BLOCKS * self._draft.target.num_cores else 1

    def _note(self, columns: tuple[int, int, int]) -> None:
        """Record the columns of the decisions, for the tables of features."""
        groups, (row, column, step) = self._groups, columns
        levels: tuple[dict[int, int], ...] = (
            {},
            {_TILE: row},
            {_TILE: column},
            {_INNER: step, _UNROLLED: step + 1},
        )
        reads = groups.partial.reads
        self._draft.nests.append(
            TiledNest(
                groups.partial,
                tuple(tuple(axis.get(level) for level in range(NUM_LEVELS)) for axis in levels),
                (_GROUPS, _PANELS, _OUTER, _UNROLLED),
                _COLUMN,
                frozenset(1 + reads.index(read) for read in (groups.left, groups.right)),
                dot=self._dot,
            )
        )
