"""The rule for attention over any number of keys, without tensor cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.rules.cuda.attention_tiles import COLUMNS, MAX_WIDTH, THREADS_ACROSS
from tuner.space.rules.cuda.chain_rows import find_nested_chain, operands, pad_rows, row_axis
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, ITEM, REGISTER, STEP, THREAD
from tuner.space.rules.cuda.online_rows import OnlineRows
from tuner.space.rules.cuda.operand_copies import VECTOR, OperandCopy
from tuner.space.rules.online_blocks import is_one_softmax
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder

THREADS_DOWN = (8, 16)
ROWS = (4, 8)
"""Threads along the rows, and rows of a thread: 32 to 128 rows read each block of keys."""
KEYS = (64, 32)
"""Keys in a block: as many as 16 threads with a vector each, or half of that. Chosen."""


class OnlineAttention:
    """Computes attention with blocks of keys, whose scores are never stored whole.

    for h, i, j, k in ...:                    for b in ...:  # blockIdx.x: a head, and rows of it
        S[h, i, j] += Q[...] * K[...]             for j0 in ...:  # blocks of keys
    for h, i in ...:                                  S_local[...] += Q_shared * K_shared
        P[h, i] = softmax(S[h, i])       ->           m, f, p, l = ...  # of the rows so far
    for h, i, c, j in ...:                            O_local[...] *= f
        O[h, i, c] += P[...] * V[...]                 O_local[...] += P_shared * V_shared
                                                  O[...] = O_local[...] / l

    It takes the chains of `AttentionTiles` with one softmax between two products, for any number
    of keys from a block on. The other sketches remain.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Add a sketch for the whole program, if it is such a chain."""
        chain = find_nested_chain(draft)
        if chain is None or not is_one_softmax(chain):
            return [draft]
        *_, width, keys = (axis.extent for axis in chain.sink.axes)
        if width > MAX_WIDTH * max(THREADS_ACROSS) or keys < min(KEYS):
            return [draft]
        fork = draft.fork("online_attention")
        try:
            with fork.schedule.verified_once(defers_threads=True):
                _OnlineScheduler(fork, chain).run()
        except ScheduleError:
            return [draft]
        return [fork, draft]


@dataclass
class _OnlineScheduler:
    """Schedules the blocks of a chain."""

    draft: SketchBuilder
    chain: ProductChain
    columns: dict[str, int] = field(default_factory=dict)

    def run(self) -> None:
        """Put all blocks into the loop over blocks of keys, and share each among the threads."""
        draft, schedule, chain = self.draft, self.draft.schedule, self.chain
        first, sink = chain.products
        epilogues = {b.name: register_epilogue(draft, b, "local") for b in chain.products}
        width = sink.axes[-2].extent
        across = [n for n in THREADS_ACROSS if width <= n * MAX_WIDTH and n < 2 * width]
        threads = (
            self._choose("down", THREADS_DOWN),
            self._choose("across", across or [min(THREADS_ACROSS)]),
        )
        rest = OnlineRows(draft, chain, threads)
        around, keys = self._tile_sink(rest, epilogues[sink.name])
        for block in rest.merge(keys):
            thread_row, thread_column = draft.loops(block)[-4:-2]
            rest.bound.append((thread_row, thread_column))
        start = self._tile_scores(rest, keys, epilogues[first.name])
        schedule.bind(schedule.fuse(*around), "blockIdx.x")
        rest.bind()
        self._stage(keys, threads)
        init = schedule.decompose_reduction(first.name, start)
        names = {f"{first.name}_update", f"{sink.name}_update", draft.block_name(init)}
        draft.scheduled |= {block.name for block in chain.blocks} | names
        self._note()

    def _choose(self, name: str, options: Sequence[int]) -> ExprRV:
        """Add a decision; its column in the table of the sketch is known by a name."""
        value, self.columns[name] = self.draft.choose(options)
        return value

    def _tile_sink(self, rest: OnlineRows, epilogue: BlockRV) -> tuple[list[LoopRV], LoopRV]:
        """Cut the last product; return the loops over tiles of rows, and over blocks of keys."""
        draft, schedule, sink = self.draft, self.draft.schedule, self.chain.sink
        down, across = rest.threads
        rows = sink.axes[row_axis(self.chain)].extent
        fitting = [n for n in ROWS if n * min(THREADS_DOWN) < 2 * rows]
        items = self._choose("rows", fitting or [min(ROWS)])
        *outer, row, column, step = draft.loops(sink.name)
        block, thread_row, row_item = schedule.split(row, [None, down, items])
        thread_column, column_item = schedule.split(column, [across, None])
        size = self._choose("keys", [n for n in KEYS if n <= sink.axes[-1].extent])
        keys, step = schedule.split(step, [None, size])
        steps, unrolled = schedule.split(step, [None, VECTOR])
        around = [*outer, block]
        schedule.reorder(
            *around, keys, thread_row, thread_column, steps, unrolled, row_item, column_item
        )
        for loop in (unrolled, row_item, column_item):
            schedule.unroll(loop)
        schedule.reverse_compute_at(epilogue, block, preserve_unit_loops=True)
        *_, row, column = draft.loops(epilogue)
        # Cut like the sums, so that each thread is seen to read its own.
        copied_row, row_item = schedule.split(row, [down, items])
        copied_column, column_item = schedule.split(column, [across, None])
        schedule.reorder(copied_row, copied_column, row_item, column_item)
        schedule.unroll(row_item)
        schedule.vectorize(column_item)
        rest.bound += [(thread_row, thread_column), (copied_row, copied_column)]
        return around, keys

    def _tile_scores(self, rest: OnlineRows, keys: LoopRV, epilogue: BlockRV) -> LoopRV:
        """Compute the scores of a block of keys in registers; return the loop over their sums."""
        draft, schedule, first = self.draft, self.draft.schedule, self.chain.products[0]
        down, across = rest.threads
        schedule.compute_at(epilogue, keys, preserve_unit_loops=True)
        schedule.set_scope(epilogue, 0, "shared")
        pad_rows(draft, epilogue, first.write.item_bytes)
        *_, row, column = draft.loops(epilogue)
        thread_row, row_item = schedule.split(row, [down, None])
        width = self._choose("columns", COLUMNS)
        tile, thread_column, column_item = schedule.split(column, [None, across, width])
        schedule.reorder(thread_row, thread_column, tile, row_item, column_item)
        schedule.compute_at(first.name, tile, preserve_unit_loops=True)
        *_, inner_row, inner_column, step = draft.loops(first.name)
        steps, unrolled = schedule.split(step, [None, VECTOR])
        schedule.reorder(steps, unrolled, inner_row, inner_column)
        for loop in (unrolled, inner_row, inner_column, row_item):
            schedule.unroll(loop)
        schedule.vectorize(column_item)
        rest.bound.append((thread_row, thread_column))
        return steps

    def _stage(self, keys: LoopRV, threads: tuple[ExprRV, ExprRV]) -> None:
        """Copy the operands in global memory: rows once, and the others for each block of keys."""
        draft, row = self.draft, row_axis(self.chain)
        first, sink = self.chain.products
        for block in (first, replace(sink, name=f"{sink.name}_update")):
            for read in operands(draft, block):
                if read.strides[row]:
                    # Threads read vectors along the sum, so rows keep their order.
                    outermost = draft.loops(block.name)[0]
                    copy = OperandCopy(block, read, ()).add(draft, outermost, threads)
                    pad_rows(draft, copy, read.item_bytes)
                else:
                    OperandCopy(block, read, (row, len(block.axes) - 2)).add(draft, keys, threads)

    # --- the table ------------------------------------------------------------------------------

    def _note(self) -> None:
        """Record the products, and the elementwise blocks between them.

        Threads compute the scores of one block of keys after another, so these are chunks. Scores
        and weights are in shared memory; sums and powers are in registers, so they do not count.
        """
        first, *scaled, _, powers, _, weights, sink = self.chain.blocks
        scores = scaled[-1] if scaled else first
        across = {THREAD: self.columns["across"]}
        of_keys = {STEP: self.columns["keys"]}
        self._note_block(sink, REGISTER, [across, of_keys], [REGISTER, CHUNK])
        of_scores = across | {REGISTER: self.columns["columns"]}
        product = replace(first, write=replace(first.write, buffer=scores.write.buffer))
        self._note_block(product, REGISTER, [of_scores, {}], [CHUNK, STEP])
        for block in (*scaled, replace(weights, operations=powers.operations)):
            self._note_block(replace(block, reads=()), ITEM, [across], [CHUNK])

    def _note_block(
        self,
        block: BlockFacts,
        rows_level: int,
        parts: Sequence[Mapping[int, int]],
        remainders: Sequence[int],
    ) -> None:
        """Record a block.

        Args:
            block: The block.
            rows_level: The level of the rows of a thread.
            parts: For each axis after the rows, the columns of the table with its parts, by level.
            remainders: For each of these axes, the level of the remainder.
        """
        row = row_axis(self.chain)
        first = len(block.axes) - len(parts)
        rows = {THREAD: self.columns["down"], rows_level: self.columns["rows"]}
        rest = dict.fromkeys(self.chain.rows.of[block.name], BLOCK)
        self.draft.note(
            block,
            {row: rows, **{first + n: of_axis for n, of_axis in enumerate(parts)}},
            rest | {first + n: level for n, level in enumerate(remainders)},
            vector_axis=first,
        )
