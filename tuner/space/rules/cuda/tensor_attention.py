"""The rule for chains of products on tensor cores, such as attention in float16."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compiler.ir.core.nodes import For, Seq
from compiler.ir.core.scopes import ACCUMULATOR, MATRIX_A, MATRIX_B
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from compiler.target.gpus import WARP_SIZE
from compiler.target.tensor_cores import MmaInstruction
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.cuda.chain_notes import ChainNote, ProductPiece
from tuner.space.rules.cuda.chain_rows import (
    find_nested_chain,
    max_rows,
    operands,
    pad_rows,
    place_rows,
    row_axis,
)
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.cuda.lane_copies import VECTOR_BYTES, share_copy
from tuner.space.rules.cuda.levels import REGISTER, STEP, THREAD
from tuner.space.rules.cuda.tensor_tiles import find_product, sync_intrinsic
from tuner.space.rules.product_chain import ProductChain
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.chain_tile import TableExtent

WARPS_DOWN = (4, 2, 1)
WARPS_ACROSS = (1, 2, 4)
"""Warps along the rows and the columns of a tile, in the order of the knobs. Chosen."""
MAX_WARPS = (4, 8)
"""Warps of a block, if as many as possible lie along the rows: if few rows fit, more lie across."""
WARP_ROWS = (1, 2)
"""Tiles of an instruction along the rows of a warp: 16 rows each. Chosen."""
WARP_KEYS = (8, 4)
"""Tiles of an instruction along the keys of a warp, as many scores at once as sums later."""
STEPS = (4, 2)
"""Instructions along the keys in a chunk of the last product: 64 or 32 keys of float16. Chosen."""
STAGES = 2
"""Pieces of an operand in shared memory at once: one is computed while the next is copied."""
MULTIPLE = 32
"""Divides all extents: the rows and columns of an instruction by 2 and 4, and 2 steps of it."""
BANK_BYTES = 4
FRAGMENT_PADDING = 8
"""Elements of padding: the lanes that store 4 pairs each in 8 rows of a tile use all banks once."""
MAX_KEYS = MAX_ROWS = 128
"""Keys in a piece, and rows of a block: 4 warps of 2 tiles of 16 rows."""


class TensorAttention:
    """Computes a tile of rows through all blocks of a chain, with products on tensor cores.

    for h, i, j, k in ...:                    for b in ...:  # blockIdx.x: a head, and rows of it
        S[h, i, j] += Q[...] * K[...]             Q_shared = ...
    for h, i in ...:                              for wi, wj in ...:  # threadIdx.z, y
        P[h, i] = softmax(S[h, i])       ->           for j0 in ...:  # tiles of keys
    for h, i, c, j in ...:                                K_shared = ...  # asynchronous
        O[h, i, c] += P[...] * V[...]                     mma(s, q, k)
                                                          S_shared[...] = s
                                                  P_shared[...] = softmax(S_shared)
                                                  for j0 in ...:
                                                      V_shared = ...  # asynchronous
                                                      mma(o, p, v)
                                                  O[...] = o

    It takes the chains of `AttentionTiles` whose products `TensorTiles` would take one by one, if
    their extents are multiples of 32. The other sketches remain.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Add a sketch for the whole program, if it is such a chain."""
        chain = find_nested_chain(draft)
        if chain is None:
            return [draft]
        products = {}
        for block in chain.products:
            product = find_chain_product(draft, block)
            if product is None:
                return [draft]
            products[block.name] = product
        fork = draft.fork("tensor_attention")
        scheduler = _TensorChainScheduler(fork, chain, products)
        if not scheduler.fits():
            return [draft]
        try:
            with fork.schedule.verified_once():
                scheduler.run()
        except ScheduleError:
            return [draft]
        return [fork, draft]


@dataclass(frozen=True)
class ChainProduct:
    """A product of a chain, the instruction that computes its tiles, and the intrinsic of that.

    Attributes:
        is_transposed: Whether the rows of the right operand run along the sum.
    """

    facts: BlockFacts
    left: TensorAccess
    right: TensorAccess
    instruction: MmaInstruction
    sync: str
    is_transposed: bool


def find_chain_product(draft: SketchBuilder, facts: BlockFacts) -> ChainProduct | None:
    """Return the product that a block computes, if instructions compute whole tiles of it."""
    match = find_product(draft, facts)
    if match is None:
        return None
    product, instruction = match
    groups = (product.rows, product.columns, product.steps)
    is_plain = product.is_plain and product.left_groups[-1] == product.steps
    if not is_plain or any(product.extent(group) % MULTIPLE for group in groups):
        return None
    sync = sync_intrinsic(product, instruction)
    is_transposed = product.right_groups[-1] == product.steps
    return ChainProduct(facts, product.left, product.right, instruction, sync, is_transposed)


@dataclass
class _TensorChainScheduler:
    """Schedules the blocks of a chain."""

    draft: SketchBuilder
    chain: ProductChain
    products: Mapping[str, ChainProduct]
    warps: Sequence[ExprRV] = ()
    across: Sequence[int] = ()
    around: list[LoopRV] = field(default_factory=list)
    bound: list[tuple[LoopRV, ...]] = field(default_factory=list)
    starts: dict[str, LoopRV] = field(default_factory=dict)
    pieces: dict[str, LoopRV] = field(default_factory=dict)
    tiles: dict[str, LoopRV] = field(default_factory=dict)
    fragments: dict[tuple[str, str], BlockRV] = field(default_factory=dict)
    columns: dict[int, dict[int, int]] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)

    @property
    def _last(self) -> ChainProduct:
        return self.products[self.chain.sink.name]

    @property
    def _max_tiles(self) -> int:
        """Return the tiles of an instruction along the rows that fit shared memory."""
        width = self.chain.sink.axes[-2].extent * self._last.right.item_bytes
        rows = max_rows(self.draft, self.chain, (STAGES * MAX_KEYS + MAX_ROWS) * width)
        return rows // self._last.instruction.shape[0]

    def fits(self) -> bool:
        """Return whether shared memory holds the results of one tile of rows."""
        return self._max_tiles > 0

    def run(self) -> None:
        """Place all blocks under the loop over tiles of rows, and expand each."""
        draft, schedule, chain = self.draft, self.draft.schedule, self.chain
        *_, last = draft.block_facts().values()
        epilogues = {b.name: register_epilogue(draft, b, ACCUMULATOR) for b in chain.products}
        names_of = {name: draft.block_name(block) for name, block in epilogues.items()}
        self._tile_last(epilogues[chain.sink.name])
        for block, handle in place_rows(draft, chain, epilogues, self.around[-1]):
            if block.name in self.products:
                self._tile(self.products[block.name], handle)
            else:
                self._share(block, handle)
            if not block.is_reduction or block.name in self.products:
                items = block.write.item_bytes
                pad_rows(draft, handle, items, FRAGMENT_PADDING * items)
        # Late, because each step on a program with threads is verified.
        schedule.bind(schedule.fuse(*self.around), "blockIdx.x")
        for loops in self.bound:
            for loop, axis in zip(loops, "zyx", strict=False):
                schedule.bind(loop, f"threadIdx.{axis}")
        for product in self.products.values():
            self._finish(product)
        draft.scheduled |= {block.name for block in chain.blocks}
        self._note(names_of, last.write.size_bytes)

    def _note(self, epilogues: Mapping[str, str], output_bytes: int) -> None:
        """Record the decisions of the chain."""
        sink, axes = self.chain.sink, len(self.chain.sink.axes)
        across, steps = self.columns[axes - 2][THREAD], self.columns[axes - 1][STEP]
        width = sink.axes[-2].extent
        pieces = {
            sink.name: ProductPiece(
                TableExtent(width, divisors=(across,)),
                TableExtent(width),
                TableExtent(self._last.instruction.shape[-1], (steps,)),
                self._last.is_transposed,
            )
        }
        for name, column in self.widths.items():
            product = self.products[name]
            pieces[name] = ProductPiece(
                TableExtent(1, (column,)),
                TableExtent(1, (column, across)),
                TableExtent(product.facts.axes[-1].extent),
                product.is_transposed,
            )
        ChainNote(
            self.draft,
            self.chain,
            self._last.instruction,
            epilogues,
            self.columns,
            pieces,
            STAGES,
            output_bytes,
            FRAGMENT_PADDING,
        ).whole_rows()

    def _tile_last(self, epilogue: BlockRV) -> None:
        """Cut the rows and columns of the last product into tiles of warps and instructions."""
        draft, schedule, sink = self.draft, self.draft.schedule, self.chain.sink
        m, n, k = self._last.instruction.shape
        tiles, most = sink.axes[row_axis(self.chain)].extent // m, self._max_tiles
        down = [w for w in WARPS_DOWN if tiles % w == 0 and w <= most]
        of_warp = [r for r in WARP_ROWS if tiles % (r * max(down)) == 0 and r * max(down) <= most]
        # Products have at least 32 columns: as many as 4 warps of one tile.
        self.across = [w for w in WARPS_ACROSS if w * max(down) in MAX_WARPS]
        num_down, down_column = draft.choose(down)
        num_across, across_column = draft.choose(self.across)
        self.warps = (num_down, num_across)
        rows, rows_column = draft.choose(of_warp)
        *outer, row, column, step = draft.loops(sink.name)
        block, warp_i, i, inner_i = schedule.split(row, [None, self.warps[0], rows, m])
        warp_j, j, inner_j = schedule.split(column, [self.warps[1], None, n])
        steps = [s for s in STEPS if sink.axes[-1].extent % (s * k) == 0]
        count, steps_column = draft.choose(steps)
        axes = len(sink.axes)
        self.columns[row_axis(self.chain)] = {THREAD: down_column, REGISTER: rows_column}
        self.columns |= {axes - 2: {THREAD: across_column}, axes - 1: {STEP: steps_column}}
        chunk, inner, inner_k = schedule.split(step, [None, count, k])
        self.around = [*outer, block]
        schedule.reorder(
            *self.around, warp_i, warp_j, chunk, inner, i, j, inner_i, inner_j, inner_k
        )
        schedule.reverse_compute_at(epilogue, warp_j, preserve_unit_loops=True)
        self.bound.append((warp_i, warp_j))
        self.pieces[sink.name] = self.starts[sink.name] = chunk
        self.tiles[sink.name] = inner_i
        self._load(self._last, inner)

    def _tile(self, product: ChainProduct, epilogue: BlockRV) -> None:
        """Compute a product in tiles of columns, with the whole sum of a tile at once."""
        schedule, name = self.draft.schedule, product.facts.name
        m, n, k = product.instruction.shape
        *_, row, column = self.draft.loops(epilogue)
        keys, across = product.facts.axes[-2].extent, max(self.across)
        widths = [n * count for count in WARP_KEYS if n * count * across <= MAX_KEYS]
        fitting = [w for w in widths if keys % (w * across) == 0] or [n]
        width, self.widths[name] = self.draft.choose(fitting)
        warp_i, rows = schedule.split(row, [self.warps[0], None])
        piece, warp_j, columns = schedule.split(column, [None, self.warps[1], width])
        schedule.reorder(warp_i, warp_j, piece, rows, columns)
        update = schedule.get_block(name)
        schedule.compute_at(update, piece, preserve_unit_loops=True)
        *_, rows, columns, step = self.draft.loops(update)
        i, inner_i = schedule.split(rows, [None, m])
        j, inner_j = schedule.split(columns, [None, n])
        steps, inner_k = schedule.split(step, [None, k])
        schedule.reorder(steps, i, j, inner_i, inner_j, inner_k)
        self.bound.append((warp_i, warp_j))
        self.pieces[name], self.starts[name], self.tiles[name] = piece, steps, inner_i
        self._load(product, steps)

    def _load(self, product: ChainProduct, step: LoopRV) -> None:
        """Load the fragments of both operands for one step of a sum."""
        schedule, name = self.draft.schedule, product.facts.name
        for read, scope in ((product.left, MATRIX_A), (product.right, MATRIX_B)):
            block = schedule.get_block(name)
            fragment = schedule.cache_read(block, read.buffer, scope)
            schedule.compute_at(fragment, step, preserve_unit_loops=True)
            self.draft.scheduled.add(self.draft.block_name(fragment))
            self.fragments[name, read.buffer] = fragment

    def _share(self, block: BlockFacts, handle: BlockRV) -> None:
        """Share the rows of a block among the warps, and their elements among the lanes."""
        schedule = self.draft.schedule
        *_, row, column = self.draft.loops(handle)
        warp_i, warp_j, item = schedule.split(row, [*self.warps, None])
        items = max(access.item_bytes for access in (block.write, *block.reads))
        # Lanes then use one bank each: the extents of products are multiples of 32.
        length = 1 if block.is_reduction else max(1, BANK_BYTES // items)
        outer, lane, vector = schedule.split(column, [None, WARP_SIZE, length])
        schedule.reorder(warp_i, warp_j, item, outer, lane, vector)
        if length > 1:
            schedule.vectorize(vector)
        self.bound.append((warp_i, warp_j, lane))

    def _finish(self, product: ChainProduct) -> None:
        """Copy operands ahead, set sums to zero, and replace tiles by instructions."""
        draft, schedule, name = self.draft, self.draft.schedule, product.facts.name
        piece = self.pieces[name]
        for read in operands(draft, product.facts):
            is_left = read.buffer == product.left.buffer
            at = draft.loops(name)[0] if is_left else piece
            copy = schedule.cache_read(self.fragments[name, read.buffer], read.buffer, "shared")
            schedule.compute_at(copy, at, preserve_unit_loops=True)
            draft.scheduled.add(draft.block_name(copy))
            parts: list[ExprRV | int] = [*self.warps, WARP_SIZE, VECTOR_BYTES // read.item_bytes]
            share_copy(draft, copy, len(read.shape), parts)
            pad_rows(draft, copy, read.item_bytes)
        update = schedule.get_block(name)
        init = schedule.decompose_reduction(update, self.starts[name])
        loop = schedule.get(piece)
        assert isinstance(loop, For), "a loop's handle stands for a loop"
        assert isinstance(loop.body, Seq), "it copies before it computes"
        count = len(loop.body.stmts)
        schedule.annotate(piece, "software_pipeline_stage", [0, *[STAGES - 1] * (count - 1)])
        schedule.annotate(piece, "software_pipeline_order", list(range(count)))
        schedule.annotate(piece, "software_pipeline_async_stages", [0])
        tile = schedule.blockize(self.tiles[name])
        draft.scheduled |= {draft.block_name(block) for block in (init, update, tile)}
        schedule.tensorize(tile, product.sync)
