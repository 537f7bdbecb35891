"""The rule for attention over any number of keys on tensor cores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.ir.core.nodes import For, Seq
from compiler.ir.core.scopes import ACCUMULATOR, ACCUMULATOR_ROWS, MATRIX_A, MATRIX_B
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from compiler.target.gpus import WARP_SIZE
from tuner.space.rules.cuda.chain_notes import ChainNote, ProductPiece
from tuner.space.rules.cuda.chain_rows import (
    PADDING_BYTES,
    find_nested_chain,
    operands,
    pad_rows,
    row_axis,
)
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.cuda.lane_copies import VECTOR_BYTES, share_copy
from tuner.space.rules.cuda.levels import REGISTER, STEP, THREAD
from tuner.space.rules.cuda.tensor_attention import (
    STAGES,
    ChainProduct,
    find_chain_product,
)
from tuner.space.rules.online_blocks import OnlineBlocks, is_one_softmax
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.chain_tile import TableExtent

WARPS_DOWN = (4, 8, 2, 1)
"""Warps along the rows. Four warps are one of each scheduler of a multiprocessor."""
WARP_ROWS = (1, 2)
"""Tiles of an instruction along the rows of a warp, 16 rows each: with 2, each key that a warp
loads from shared memory is used twice.
"""
KEYS = (64, 32, 128)
"""Keys in a block. With 64, scores take half of the registers that sums of 128 columns take."""
MAX_SUMS = 176
"""Elements of sums and scores that a lane holds: of 255 registers, the others hold operands and
indices. Chosen.
"""


class OnlineTensorAttention:
    """Computes attention with blocks of keys, whose scores are never stored whole.

    for h, i, j, k in ...:                    for b in ...:  # blockIdx.x: a head, and rows of it
        S[h, i, j] += Q[...] * K[...]             Q_shared = ...
    for h, i in ...:                              for j0 in ...:  # blocks of keys
        P[h, i] = softmax(S[h, i])       ->           K_shared, V_shared = ...  # asynchronous
    for h, i, c, j in ...:                            mma(s, q, k)
        O[h, i, c] += P[...] * V[...]                 m, f, p, l = ...  # of the rows so far
                                                      o *= f
                                                      mma(o, p, v)
                                                  O[...] = o / l

    It takes the chains of `TensorAttention` with one softmax between two products, for any number
    of keys. The other sketches remain.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Add a sketch for the whole program, if it is such a chain."""
        chain = find_nested_chain(draft)
        if chain is None or not is_one_softmax(chain):
            return [draft]
        products = {b.name: find_chain_product(draft, b) for b in chain.products}
        by_name = {name: product for name, product in products.items() if product is not None}
        if len(by_name) < len(products):
            return [draft]
        fork = draft.fork("online_tensor_attention")
        try:
            with fork.schedule.verified_once(defers_threads=True):
                _OnlineTensorScheduler(fork, chain, by_name).run()
        except ScheduleError:
            return [draft]
        return [fork, draft]


@dataclass
class _OnlineTensorScheduler:
    """Schedules the blocks of a chain; all warps of a block lie along its rows."""

    draft: SketchBuilder
    chain: ProductChain
    products: Mapping[str, ChainProduct]
    warps: list[LoopRV] = field(default_factory=list)
    fragments: dict[tuple[str, str], BlockRV] = field(default_factory=dict)
    columns: dict[int, dict[int, int]] = field(default_factory=dict)

    def run(self) -> None:
        """Put all blocks into the loop over blocks of keys, and replace tiles by instructions."""
        draft, schedule, chain = self.draft, self.draft.schedule, self.chain
        first, sink = chain.products
        *_, last = draft.block_facts().values()
        epilogues = {b.name: register_epilogue(draft, b, ACCUMULATOR) for b in chain.products}
        names_of = {name: draft.block_name(block) for name, block in epilogues.items()}
        down, rows = self._rows()
        around, keys, steps, tile = self._tile_sink(down, rows, epilogues[sink.name])
        self._merge(keys, down, rows)
        start, first_tile = self._tile_scores(down, rows, keys, epilogues[first.name])
        update = f"{sink.name}_update"
        self._load(self.products[sink.name], update, steps)
        self._load(self.products[first.name], first.name, start)
        schedule.bind(schedule.fuse(*around), "blockIdx.x")
        for loop in self.warps:
            schedule.bind(loop, "threadIdx.y")
        for product in self.products.values():
            self._stage(product, keys, down)
        draft.scheduled.add(draft.block_name(schedule.decompose_reduction(first.name, start)))
        self._pipeline(keys)
        for inner, product in ((first_tile, self.products[first.name]), (tile, self._last)):
            instruction = schedule.blockize(inner)
            draft.scheduled.add(draft.block_name(instruction))
            schedule.tensorize(instruction, product.sync)
        is_causal = self._skip_masked(keys)
        names = {first.name, f"{first.name}_update", sink.name, update}
        draft.scheduled |= {block.name for block in chain.blocks} | names
        self._note(names_of, last.write.size_bytes, is_causal=is_causal)

    def _skip_masked(self, keys: LoopRV) -> bool:
        """Skip the blocks of keys that a mask excludes; return whether a mask is known to."""
        try:
            self.draft.schedule.skip_masked(keys)
        except ScheduleError:
            return False
        return True

    def _note(self, epilogues: Mapping[str, str], output_bytes: int, *, is_causal: bool) -> None:
        """Record the decisions of the chain."""
        first, sink = self.chain.products
        (steps,) = self.columns[len(sink.axes) - 1].values()
        keys = TableExtent(self._last.instruction.shape[-1], (steps,))
        whole = TableExtent(first.axes[-1].extent), TableExtent(sink.axes[-2].extent)
        pieces = {
            first.name: ProductPiece(keys, keys, whole[0], self.products[first.name].is_transposed),
            sink.name: ProductPiece(whole[1], whole[1], keys, self._last.is_transposed),
        }
        ChainNote(
            self.draft,
            self.chain,
            self._last.instruction,
            epilogues,
            self.columns,
            pieces,
            STAGES,
            output_bytes,
            PADDING_BYTES // self.chain.blocks[-2].write.item_bytes,
        ).online(keeps_weights=self._keeps_weights, is_causal=is_causal)

    @property
    def _last(self) -> ChainProduct:
        return self.products[self.chain.sink.name]

    def _rows(self) -> tuple[ExprRV, ExprRV]:
        """Choose the warps of a block, and the tiles of rows of a warp."""
        draft, sink = self.draft, self.chain.sink
        tiles = sink.axes[row_axis(self.chain)].extent // self._last.instruction.shape[0]
        down = [n for n in WARPS_DOWN if tiles % n == 0]
        widest = (sink.axes[-2].extent + min(KEYS)) * self._last.instruction.shape[0] // WARP_SIZE
        rows = [n for n in WARP_ROWS if tiles % (n * max(down)) == 0 and n * widest <= MAX_SUMS]
        num_warps, warps_column = draft.choose(down)
        num_tiles, tiles_column = draft.choose(rows or [1])
        self.columns[row_axis(self.chain)] = {THREAD: warps_column, REGISTER: tiles_column}
        return num_warps, num_tiles

    def _tile_sink(
        self, down: ExprRV, rows: ExprRV, epilogue: BlockRV
    ) -> tuple[list[LoopRV], LoopRV, LoopRV, LoopRV]:
        """Cut the last product into blocks of keys, and tiles of warps and instructions.

        Returns:
            The loops over tiles of rows, over blocks of keys, and over steps in one of these, and
            the outermost loop of the tile of an instruction.
        """
        draft, schedule, sink = self.draft, self.draft.schedule, self.chain.sink
        m, n, k = self._last.instruction.shape
        *outer, row, column, step = draft.loops(sink.name)
        block, warp, i, inner_i = schedule.split(row, [None, down, rows, m])
        j, inner_j = schedule.split(column, [None, n])
        counts = [keys // k for keys in KEYS if sink.axes[-1].extent % keys == 0]
        count, steps_column = draft.choose(counts)
        self.columns[len(sink.axes) - 1] = {STEP: steps_column}
        keys, steps, inner_k = schedule.split(step, [None, count, k])
        around = [*outer, block]
        schedule.reorder(*around, keys, warp, steps, i, j, inner_i, inner_j, inner_k)
        schedule.reverse_compute_at(epilogue, block, preserve_unit_loops=True)
        # Cut like the sums, so that each lane is seen to read its own.
        copied = schedule.split(draft.loops(epilogue)[-2], [down, rows, None])
        self.warps += [warp, copied[0]]
        return around, keys, steps, inner_i

    def _merge(self, keys: LoopRV, down: ExprRV, rows: ExprRV) -> None:
        """Compute the softmax in the loop over blocks of keys, in the registers of warps."""
        draft, schedule = self.draft, self.draft.schedule
        blocks = OnlineBlocks.merged(draft, self.chain, keys)
        for block in (*blocks.numbers, blocks.of_maxima, blocks.of_totals):
            schedule.set_scope(block, 0, ACCUMULATOR_ROWS)
        schedule.set_scope(blocks.powers, 0, ACCUMULATOR)
        schedule.set_scope(blocks.weights, 0, MATRIX_A if self._keeps_weights else "shared")
        if not self._keeps_weights:
            pad_rows(draft, blocks.weights, self.chain.blocks[-2].write.item_bytes)
        # Cut like the sums, so that each warp is seen to read its own.
        for block in blocks.numbers:
            self.warps.append(schedule.split(draft.loops(block)[-1], [down, rows, None])[0])
        for block in (blocks.of_maxima, blocks.powers, blocks.of_totals, blocks.weights):
            warp, row, _ = schedule.split(draft.loops(block)[-2], [down, rows, None])
            self.warps.append(warp)
            if block in (blocks.of_maxima, blocks.of_totals):
                init = schedule.decompose_reduction(block, row)
                draft.scheduled |= {draft.block_name(each) for each in (init, block)}
        for block in (blocks.start, blocks.scale, blocks.divide):
            # Around and inside of the tiles of warps are the loops of the sum, in their order.
            self.warps.append(draft.loops(block)[-5])

    @property
    def _keeps_weights(self) -> bool:
        """Return whether lanes hold the same elements of sums and of the weights."""
        instruction = self._last.instruction
        return instruction.a.lane == instruction.c.lane

    def _tile_scores(
        self, down: ExprRV, rows: ExprRV, keys: LoopRV, epilogue: BlockRV
    ) -> tuple[LoopRV, LoopRV]:
        """Compute the scores of a block of keys, with the whole sum of a score at once.

        Returns:
            The loop over steps of the sum, and the outermost loop of the tile of an instruction.
        """
        draft, schedule, first = self.draft, self.draft.schedule, self.chain.products[0]
        m, n, k = self.products[first.name].instruction.shape
        schedule.compute_at(epilogue, keys, preserve_unit_loops=True)
        schedule.set_scope(epilogue, 0, ACCUMULATOR)
        warp, *_ = schedule.split(draft.loops(epilogue)[-2], [down, rows, None])
        schedule.compute_at(first.name, warp, preserve_unit_loops=True)
        *_, row, column, step = draft.loops(first.name)
        i, inner_i = schedule.split(row, [None, m])
        j, inner_j = schedule.split(column, [None, n])
        steps, inner_k = schedule.split(step, [None, k])
        schedule.reorder(steps, i, j, inner_i, inner_j, inner_k)
        self.warps.append(warp)
        return steps, inner_i

    def _load(self, product: ChainProduct, name: str, step: LoopRV) -> None:
        """Load the fragments of both operands for one step of a sum."""
        schedule = self.draft.schedule
        weights = self.chain.blocks[-2]
        for read, scope in ((product.left, MATRIX_A), (product.right, MATRIX_B)):
            is_weights = read.buffer == weights.write.buffer
            if is_weights and self._keeps_weights:
                continue
            block = schedule.get_block(weights.name)
            buffer = self.draft.written_buffer(block) if is_weights else read.buffer
            fragment = schedule.cache_read(name, buffer, scope)
            schedule.compute_at(fragment, step, preserve_unit_loops=True)
            self.draft.scheduled.add(self.draft.block_name(fragment))
            self.fragments[product.facts.name, read.buffer] = fragment

    def _stage(self, product: ChainProduct, keys: LoopRV, down: ExprRV) -> None:
        """Copy the operands in global memory: rows once, and the others for each block of keys."""
        draft, schedule, name = self.draft, self.draft.schedule, product.facts.name
        for read in operands(draft, product.facts):
            fragment = self.fragments[name, read.buffer]
            is_left = read.buffer == product.left.buffer
            at = draft.loops(fragment)[0] if is_left else keys
            copy = schedule.cache_read(fragment, read.buffer, "shared")
            schedule.compute_at(copy, at, preserve_unit_loops=True, index=-2)
            draft.scheduled.add(draft.block_name(copy))
            parts: list[ExprRV | int] = [1, down, WARP_SIZE, VECTOR_BYTES // read.item_bytes]
            share_copy(draft, copy, len(read.shape), parts)
            pad_rows(draft, copy, read.item_bytes)

    def _pipeline(self, keys: LoopRV) -> None:
        """Copy the next block of keys and values while one is computed."""
        schedule = self.draft.schedule
        loop = schedule.get(keys)
        assert isinstance(loop, For), "a loop's handle stands for a loop"
        assert isinstance(loop.body, Seq), "it copies before it computes"
        count, copies = len(loop.body.stmts), len(self.products)
        stages = [0] * copies + [STAGES - 1] * (count - copies)
        schedule.annotate(keys, "software_pipeline_stage", stages)
        schedule.annotate(keys, "software_pipeline_order", list(range(count)))
        schedule.annotate(keys, "software_pipeline_async_stages", [0])
