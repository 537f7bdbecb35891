"""The rule for chains of products, such as attention: one kernel computes tiles of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cuda.chain_rows import (
    find_nested_chain,
    max_rows,
    operands,
    pad_rows,
    place_rows,
    row_axis,
)
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.cuda.levels import (
    BLOCK,
    CHUNK,
    ITEM,
    REGISTER,
    STEP,
    THREAD,
)
from tuner.space.rules.cuda.operand_copies import VECTOR, OperandCopy
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder

THREADS_DOWN = (8, 16, 4)
THREADS_ACROSS = (16, 32, 8)
"""Threads along the rows and the columns of a tile, in the order of the knobs. Chosen."""
ROWS = (4, 8, 2)
"""Rows of a thread. With 4, and rows padded by 4 elements, the two rows of 16 threads that a warp
reads at once lie in different banks.
"""
COLUMNS = (4, 2)
"""Scores of a thread along the keys: a vector of four-byte elements, or half of one."""
MAX_WIDTH = 8
"""Results of a thread along a row. Chosen."""
STEPS = (4, 8, 2)
"""Steps of a sum in a chunk, each of `VECTOR` unrolled elements. Chosen."""
MIN_ROWS = 8
"""The fewest rows of a tile: with fewer, operands are read again too often. Chosen."""
PIECE_BYTES = 48 << 10
"""Pieces of operands: 64 rows of 128 elements, and 32 steps of 128 columns, of four bytes."""


class AttentionTiles:
    """Computes a tile of rows through all blocks of a chain in each block of threads.

    for h, i, j, k in ...:                    for b in ...:  # blockIdx.x: a head, and rows of it
        S[h, i, j] += Q[...] * K[...]             for ty, tx in ...:  # threadIdx.y, x
    for h, i in ...:                                  for j0 in ...:  # tiles of keys
        P[h, i] = softmax(S[h, i])       ->               S_local[...] += Q_shared * K_shared
    for h, i, c, j in ...:                                S_shared[...] = S_local[...]
        O[h, i, c] += P[...] * V[...]                 P_shared[...] = softmax(S_shared)
                                                      O_local[...] += P_shared * V_shared
                                                      O[...] = O_local[...]

    The scores of a tile stay in shared memory, so each is computed once, and global memory holds
    only operands and results. Whole rows are normalised before they are used, as the program says.
    So rows must fit: with 227 KiB, at most 3,600 keys of float32. `OnlineAttention` takes longer
    ones.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule the whole program, if it is such a chain."""
        chain = find_nested_chain(draft)
        if chain is None or max_rows(draft, chain, PIECE_BYTES) < MIN_ROWS:
            return [draft]
        if chain.sink.axes[-2].extent > MAX_WIDTH * max(THREADS_ACROSS):
            return [draft]
        fork = draft.fork("attention_tiles")
        try:
            with fork.schedule.verified_once():
                _AttentionScheduler(fork, chain).run()
        except ScheduleError:
            return [draft]
        return [fork]


@dataclass
class _AttentionScheduler:
    """Schedules the blocks of a chain."""

    draft: SketchBuilder
    chain: ProductChain
    around: list[LoopRV] = field(default_factory=list)
    threads: tuple[ExprRV, ExprRV] | None = None
    rows: ExprRV | None = None
    columns: dict[str, int] = field(default_factory=dict)
    bound: list[tuple[LoopRV, LoopRV]] = field(default_factory=list)
    chunks: dict[str, LoopRV] = field(default_factory=dict)

    def run(self) -> None:
        """Place all blocks under the loop over tiles of rows, and expand each."""
        draft, schedule, chain = self.draft, self.draft.schedule, self.chain
        epilogues = {b.name: register_epilogue(draft, b, "local") for b in chain.products}
        self._choose_threads()
        self._tile_sink(epilogues[chain.sink.name])
        for block, handle in place_rows(draft, chain, epilogues, self.around[-1]):
            self._expand(block, handle)
        # Late, because each step on a program with threads is verified.
        schedule.bind(schedule.fuse(*self.around), "blockIdx.x")
        for down, across in self.bound:
            schedule.bind(down, "threadIdx.y")
            schedule.bind(across, "threadIdx.x")
        for block in chain.products:
            self._stage(block)
            self._start(block)
        draft.scheduled |= {block.name for block in chain.blocks}

    def _choose_threads(self) -> None:
        draft, sink = self.draft, self.chain.sink
        width = sink.axes[-2].extent
        rows = sink.axes[row_axis(self.chain)].extent
        fitting = max_rows(draft, self.chain, PIECE_BYTES)
        down = [n for n in THREADS_DOWN if n <= fitting and n < 2 * rows] or [min(THREADS_DOWN)]
        across = [n for n in THREADS_ACROSS if width <= n * MAX_WIDTH and n < 2 * width]
        across = across or [min(THREADS_ACROSS)]  # a very narrow result
        count, self.columns["down"] = draft.choose(down)
        wide, self.columns["across"] = draft.choose(across)
        self.threads = (count, wide)
        fitting_rows = [n for n in ROWS if n * min(down) <= min(fitting, 2 * rows)] or [min(ROWS)]
        self.rows, self.columns["rows"] = draft.choose(fitting_rows)

    def _tile_sink(self, epilogue: BlockRV) -> None:
        """Cut the rows and columns of the last product, and add up in registers."""
        schedule, sink = self.draft.schedule, self.chain.sink
        *outer, row, column, step = self.draft.loops(sink.name)
        down, across = self._threads
        block, thread_row, row_item = schedule.split(row, [None, down, self.rows])
        thread_column, column_item = schedule.split(column, [across, None])
        self.around = [*outer, block]
        chunk, steps, unrolled = self._split_steps(sink, step)
        schedule.reorder(
            *self.around, thread_row, thread_column, chunk, steps, unrolled, row_item, column_item
        )
        schedule.reverse_compute_at(epilogue, thread_column, preserve_unit_loops=True)
        *_, copied_row, copied_column = self.draft.loops(epilogue)
        schedule.unroll(copied_row)
        schedule.vectorize(copied_column)
        for loop in (unrolled, row_item, column_item):
            schedule.unroll(loop)
        self.bound.append((thread_row, thread_column))
        self._note_product(sink, REGISTER)

    @property
    def _threads(self) -> tuple[ExprRV, ExprRV]:
        assert self.threads is not None, "chosen before"
        return self.threads

    def _split_steps(self, block: BlockFacts, loop: LoopRV) -> Sequence[LoopRV]:
        """Cut the sum of a product into chunks, steps and unrolled elements."""
        extent = block.axes[-1].extent
        counts = [n for n in STEPS if n * VECTOR < 2 * extent] or [min(STEPS)]
        length, self.columns[f"{block.name} steps"] = self.draft.choose(counts)
        parts = self.draft.schedule.split(loop, [None, length, VECTOR])
        self.chunks[block.name] = parts[0]
        return parts

    def _expand(self, block: BlockFacts, handle: BlockRV) -> None:
        """Share the rows and columns of a block among the threads."""
        if block.name in self.chain.tiled:
            self._tile(block, handle)
            return
        schedule, (down, across) = self.draft.schedule, self._threads
        *_, row, column = self.draft.loops(handle)
        thread_row, row_item = schedule.split(row, [down, None])
        if block.is_reduction:
            item, thread = schedule.split(column, [None, across])
            schedule.reorder(thread_row, row_item, item, thread)
        else:
            length = 1 if block.axes[-1].extent % VECTOR else VECTOR
            item, thread, vector = schedule.split(column, [None, across, length])
            schedule.reorder(thread_row, row_item, item, thread, vector)
            schedule.vectorize(vector)
            pad_rows(self.draft, handle, block.write.item_bytes)
            self._note_elements(block)
        self.bound.append((thread_row, thread))

    def _tile(self, block: BlockFacts, epilogue: BlockRV) -> None:
        """Cut the columns of a product into tiles, and add up a tile in registers."""
        schedule = self.draft.schedule
        down, across = self._threads
        *_, row, column = self.draft.loops(epilogue)
        extent = block.axes[-2].extent
        counts = [n for n in COLUMNS if n < 2 * extent] or [min(COLUMNS)]
        width, self.columns[f"{block.name} columns"] = self.draft.choose(counts)
        thread_row, row_item = schedule.split(row, [down, None])
        tile, thread_column, column_item = schedule.split(column, [None, across, width])
        schedule.reorder(thread_row, thread_column, tile, row_item, column_item)
        update = schedule.get_block(block.name)
        schedule.compute_at(update, tile, preserve_unit_loops=True)
        *_, inner_row, inner_column, step = self.draft.loops(update)
        chunk, steps, unrolled = self._split_steps(block, step)
        schedule.reorder(chunk, steps, unrolled, inner_row, inner_column)
        for loop in (unrolled, inner_row, inner_column, row_item):
            schedule.unroll(loop)
        schedule.vectorize(column_item)
        pad_rows(self.draft, epilogue, block.write.item_bytes)
        self.bound.append((thread_row, thread_column))
        self._note_product(block, ITEM)

    def _stage(self, block: BlockFacts) -> None:
        """Copy the operands in global memory: rows once, and the others in chunks."""
        chunk, row = self.chunks[block.name], row_axis(self.chain)
        loops = self.draft.loops(block.name)
        for read in operands(self.draft, block):
            if read.strides[row]:
                # Threads read vectors along the sum, so rows keep their order.
                copy = OperandCopy(block, read, ()).add(self.draft, loops[0], self._threads)
                pad_rows(self.draft, copy, read.item_bytes)
            else:
                copied = OperandCopy(block, read, (row, len(block.axes) - 2))
                copied.add(self.draft, chunk, self._threads)

    def _start(self, block: BlockFacts) -> None:
        """Set sums to zero before the first chunk."""
        schedule = self.draft.schedule
        update = schedule.get_block(block.name)
        init = schedule.decompose_reduction(update, self.chunks[block.name])
        self.draft.scheduled |= {self.draft.block_name(init), self.draft.block_name(update)}

    # --- the table ------------------------------------------------------------------------------

    def _note_product(self, block: BlockFacts, columns_rest: int) -> None:
        row, column, step = row_axis(self.chain), len(block.axes) - 2, len(block.axes) - 1
        across = {THREAD: self.columns["across"]}
        if f"{block.name} columns" in self.columns:
            across[REGISTER] = self.columns[f"{block.name} columns"]
        levels = {
            row: {THREAD: self.columns["down"], REGISTER: self.columns["rows"]},
            column: across,
            step: {STEP: self.columns[f"{block.name} steps"]},
        }
        rest = dict.fromkeys(self.chain.rows.of[block.name], BLOCK)
        rest |= {column: columns_rest, step: CHUNK}
        self.draft.note(block, levels, rest, vector_axis=column)

    def _note_elements(self, block: BlockFacts) -> None:
        row, column = row_axis(self.chain), len(block.axes) - 1
        levels = {
            row: {THREAD: self.columns["down"], ITEM: self.columns["rows"]},
            column: {THREAD: self.columns["across"]},
        }
        rest = dict.fromkeys(self.chain.rows.of[block.name], BLOCK) | {column: STEP}
        self.draft.note(block, levels, rest, vector_axis=column)
