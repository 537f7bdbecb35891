"""Chains of two products for a few rows at once, such as attention of one query over a cache."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from compiler.ir.core.nodes import BlockRealize
from compiler.passes.common.widen_buffers import KEY as WIDE_KEY
from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_SHARED_ROWS = 8
"""Rows that use each key while it is in a register. More rows fill a register tile of their own, so
that transposing the keys pays.
"""
MAX_PARTIAL_RESULTS = 12
"""Vectors of partial results: with operands they fill the 16 vector registers of AVX2."""
KEYS = (1, 2, 4, 8)
"""Options for the keys that are multiplied at once. Chosen."""
VECTORS = (2, 1, 4)
"""Options for the vectors of columns of a tile of results. Chosen."""
PIECES = (16, 64, 256)
"""Options for the values that are read before partial results are stored: a few columns of each
are read at a time, and all of them stay in the first-level cache. Chosen.
"""
STEPS = (2, 1, 4)
"""Options for the values in an unrolled step. Chosen."""
_OUTER, _COLUMNS, _STEPS, _INNER, _UNROLLED, _REGISTERS = 0, 1, 2, 4, 5, 6


@dataclass(frozen=True)
class _Streams:
    """The rows of a chain that share the operands which are read once.

    `shared` holds, for each block, the axes of these rows; `others` the other axes of rows. `keys`
    is the first product, of dot products along contiguous rows; `values` is the sink.
    """

    chain: ProductChain
    keys: BlockFacts
    values: BlockFacts
    shared: dict[str, tuple[int, ...]]
    others: dict[str, tuple[int, ...]]

    @property
    def num_rows(self) -> int:
        """Return the number of rows that share an operand."""
        return prod(self.keys.axes[row].extent for row in self.shared[self.keys.name])


def streamed_chain(draft: SketchBuilder, chain: ProductChain) -> SketchBuilder | None:
    """Return a fork that reads the large operands of a chain once, in their own layout.

        S = Q @ K.T                     for h:
        P = exp(S - max(S))        ->       for j, i: S[i, j] = sum of Q[i] * K[j]  # k in lanes
        W = P / sum(P)                      P = ...; W = ..., row by row
        O = W @ V                           for j_0, c_0: O[i, c_0] += W[i, j] * V[j, c_0]

    The rows `i` are the few that read the same keys, such as the heads of a group with one query
    each: all are in registers while a key is. Nothing is copied: with few rows, transposing the
    keys costs more than the products.

    Returns:
        None if too many rows share an operand, or none does.
    """
    streams = _find(chain)
    if streams is None:
        return None
    fork = draft.fork("streamed")
    try:
        _StreamScheduler(fork, streams).run()
    except ScheduleError:
        return None
    return fork


def keep_wide(draft: SketchBuilder, block: BlockRV, item_bytes: int, chain: ProductChain) -> None:
    """Keep narrow numbers that a product reads many times as wide as its sum."""
    sum_bytes = chain.sink.write.item_bytes
    if item_bytes < sum_bytes:
        draft.schedule.annotate(block, WIDE_KEY, [0, 8 * sum_bytes])


def _find(chain: ProductChain) -> _Streams | None:
    products = chain.products
    if len(products) != 2:
        return None
    keys, values = products
    column, step = chain.tiled[keys.name]
    if keys.write.item_bytes != values.write.item_bytes or keys.axes[step].extent < KEYS[-1]:
        return None
    if any(read.strides[step] != 1 for read in keys.reads):
        return None
    key, value = (_operand(chain, block) for block in products)
    if key is None or value is None or value.strides[chain.tiled[values.name][0]] != 1:
        return None
    key_rows, value_rows = chain.rows.of[keys.name], chain.rows.of[values.name]
    is_shared = [
        not key.strides[a] and not value.strides[b]
        for a, b in zip(key_rows, value_rows, strict=True)
    ]
    if all(is_shared) or not key.strides[column]:
        return None

    def rows(*, shared: bool) -> dict[str, tuple[int, ...]]:
        return {
            name: tuple(axis for axis, flag in zip(axes, is_shared, strict=True) if flag == shared)
            for name, axes in chain.rows.of.items()
        }

    streams = _Streams(chain, keys, values, rows(shared=True), rows(shared=False))
    return streams if streams.num_rows <= MAX_SHARED_ROWS else None


def _operand(chain: ProductChain, block: BlockFacts) -> TensorAccess | None:
    """Return the operand of a product that depends on its column."""
    column, _ = chain.tiled[block.name]
    moving = [read for read in block.reads if read.strides[column]]
    return moving[0] if len(moving) == 1 and len(block.reads) == 2 else None


@dataclass
class _StreamScheduler:
    """Schedules the blocks of a chain under the loops over rows that share nothing."""

    draft: SketchBuilder
    streams: _Streams
    around: list[LoopRV] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Sample the lanes of dot products and of other reductions."""
        keys = self.streams.keys
        extent = keys.axes[self.streams.chain.tiled[keys.name][1]].extent
        vector = self._vector(keys)
        sizes = [n * vector for n in (1, 2) if n * vector <= extent]
        self.lanes, self.lane_column = self.draft.cut(extent, sizes or [vector])

    def run(self) -> None:
        """Place all blocks under these loops, and expand each."""
        chain = self.streams.chain
        piece = self._place()
        starts: dict[str, LoopRV] = {chain.sink.name: piece}
        for block in chain.blocks[:-1]:
            if block is self.streams.keys:
                starts[block.name] = self._multiply_keys()
            elif block.is_reduction:
                starts[block.name] = self._reduce(block)
            else:
                self._expand(block)
        if chain.epilogue is not None:
            self._finish(chain.epilogue)
        self.draft.parallelize(self.around)
        for name, loop in starts.items():
            schedule = self.draft.schedule
            init = schedule.decompose_reduction(schedule.get_block(name), loop)
            self._expand_start(self.draft.block_name(init), is_sink=name == chain.sink.name)
            self.draft.scheduled |= {name, self.draft.block_name(init)}

    def _vector(self, block: BlockFacts) -> int:
        return max(1, self.draft.cpu.vector_bits // (8 * block.write.item_bytes))

    def _place(self) -> LoopRV:
        """Tile the sink, and compute all other blocks under its outer loops.

        Returns:
            The loop over pieces of the values.
        """
        streams, schedule = self.streams, self.draft.schedule
        sink = streams.values
        loops = self.draft.loops(sink.name)
        column, step = streams.chain.tiled[sink.name]
        self.around = [loops[row] for row in streams.others[sink.name]]
        rows = [loops[row] for row in streams.shared[sink.name]]
        lanes, extent = self._vector(sink), sink.axes[column].extent
        most = MAX_PARTIAL_RESULTS // streams.num_rows
        counts = [n for n in VECTORS if n <= most and extent % (n * lanes) == 0]
        width, first = self.draft.cut(extent, [n * lanes for n in counts] or [min(extent, lanes)])
        pieces, columns = schedule.split(loops[column], [None, width])
        length = sink.axes[step].extent
        size, piece_column = self.draft.cut(length, [n for n in PIECES if n < length] or [length])
        outer, inner = schedule.split(loops[step], [None, size])
        unrolled, step_column = self.draft.choose(STEPS)
        inner, steps = schedule.split(inner, [None, unrolled])
        schedule.reorder(*self.around, outer, pieces, inner, steps, *rows, columns)
        for loop in (steps, *rows):
            schedule.unroll(loop)
        schedule.vectorize(columns)
        for block in reversed(streams.chain.blocks[:-1]):
            handle = schedule.get_block(block.name)
            schedule.compute_at(handle, self.around[-1], preserve_unit_loops=True)
        cuts = {
            column: {_COLUMNS: first, _REGISTERS: first + 1},
            step: {_STEPS: piece_column, _UNROLLED: step_column},
        }
        self._note(sink, cuts, {step: _INNER}, column)
        return outer

    def _loops(self, block: BlockFacts) -> tuple[list[LoopRV], dict[int, LoopRV]]:
        """Return the loops of a block over shared rows, and those over its other axes."""
        schedule = self.draft.schedule
        loops = self.draft.loops(block.name)[len(self.around) :]
        realize = schedule.get(schedule.get_block(block.name))
        assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
        names = [iterator.var.name for iterator in realize.block.iter_vars]
        by_axis = {i: loops[names.index(axis.name)] for i, axis in enumerate(block.axes)}
        inner = {i: by_axis[i] for i in self.streams.chain.inner(block)}
        return [by_axis[row] for row in self.streams.shared[block.name]], inner

    def _multiply_keys(self) -> LoopRV:
        """Multiply several keys by all rows at once; return the loop along a key."""
        schedule, keys = self.draft.schedule, self.streams.keys
        column, step = self.streams.chain.tiled[keys.name]
        self._widen_queries()
        rows, inner = self._loops(keys)
        most = max(1, MAX_PARTIAL_RESULTS // self.streams.num_rows)
        extent = keys.axes[column].extent
        counts = [n for n in reversed(KEYS) if n <= min(most, extent)][:3]
        count, first = self.draft.cut(extent, counts)
        outer, several = schedule.split(inner[column], [None, count])
        schedule.reorder(outer, inner[step], several, *rows)
        for loop in (several, *rows):
            schedule.unroll(loop)
        schedule.annotate(inner[step], KEY, [self.lanes, 2])
        cuts = {
            column: {_COLUMNS: first, _REGISTERS: first + 1},
            step: {_INNER: self.lane_column, _REGISTERS: self.lane_column + 1},
        }
        self._note(keys, cuts, {}, step)
        return inner[step]

    def _widen_queries(self) -> None:
        """Convert narrow queries once; each is read once a key."""
        keys, schedule = self.streams.keys, self.draft.schedule
        column, _ = self.streams.chain.tiled[keys.name]
        for read in keys.reads:
            if read.strides[column] or read.item_bytes >= keys.write.item_bytes:
                continue
            copy = schedule.cache_read(schedule.get_block(keys.name), read.buffer, "global")
            schedule.compute_at(copy, self.around[-1], preserve_unit_loops=True)
            schedule.vectorize(self.draft.loops(copy)[-1])
            keep_wide(self.draft, copy, read.item_bytes, self.streams.chain)
            self.draft.scheduled.add(self.draft.block_name(copy))

    def _reduce(self, block: BlockFacts) -> LoopRV:
        """Reduce all shared rows at once, in lanes; return the loop along a row."""
        schedule = self.draft.schedule
        rows, inner = self._loops(block)
        (step,) = inner.values()
        schedule.reorder(step, *rows)
        for loop in rows:
            schedule.unroll(loop)
        schedule.annotate(step, KEY, self.lanes)
        (axis,) = inner
        self._note(block, {axis: {_REGISTERS: self.lane_column + 1}}, {axis: _INNER}, axis)
        return step

    def _expand(self, block: BlockFacts) -> None:
        schedule = self.draft.schedule
        _, inner = self._loops(block)
        if inner:
            schedule.vectorize(list(inner.values())[-1])
        handle = schedule.get_block(block.name)
        keep_wide(self.draft, handle, block.write.item_bytes, self.streams.chain)
        self.draft.scheduled.add(block.name)

    def _expand_start(self, name: str, *, is_sink: bool) -> None:
        schedule = self.draft.schedule
        loops = self.draft.loops(name)
        if is_sink:
            schedule.vectorize(loops.pop())
        for loop in loops[-len(self.streams.shared[self.streams.keys.name]) :]:
            schedule.unroll(loop)

    def _finish(self, epilogue: BlockFacts) -> None:
        """Run the epilogue on the finished rows."""
        schedule = self.draft.schedule
        block = schedule.get_block(epilogue.name)
        schedule.reverse_compute_at(block, self.around[-1], preserve_unit_loops=True)
        schedule.vectorize(self.draft.loops(block)[-1])
        self.draft.scheduled.add(epilogue.name)

    def _note(
        self,
        block: BlockFacts,
        cuts: dict[int, dict[int, int]],
        rest: dict[int, int],
        vector: int,
    ) -> None:
        rows = dict.fromkeys(self.streams.shared[block.name], _REGISTERS)
        self.draft.note(block, cuts, {**rows, **rest}, vector)
        self.draft.scheduled.add(block.name)
