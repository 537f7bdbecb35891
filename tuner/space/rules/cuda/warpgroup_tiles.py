"""The rule for products of warpgroups: tiles that the copy engine fetches, on sm_90a."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.nodes import Store
from compiler.ir.core.scopes import ACCUMULATOR
from compiler.passes.device.fragments.operand_ring import STAGES
from compiler.passes.device.fragments.warpgroup_product import widened_factors
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV
from compiler.target.gpus import nearest_gpu
from compiler.target.tensor_cores import DEVICE_INSTRUCTION, WGMMA_INSTRUCTIONS
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, REGISTER, THREAD
from tuner.space.rules.epilogue import epilogue_of
from tuner.space.rules.matrix_products import MatrixProduct, block_of, find_matrix_product
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.tensor_tile import WarpgroupTile

ROWS = (64, 128)
"""Rows of sums of a warpgroup: the rows of one instruction, or of two."""
COLUMNS = (128, 256, 64, 192)
"""Columns of sums of a block."""
CONSUMERS = (2, 1)
"""Warpgroups that compute; with two, each thread may have 232 registers."""
STAGE_COUNTS = (4, 3, 5, 2, 6, 7)
"""Chunks of operands in shared memory at once."""
GROUPS = (8, 1, 4, 16)
"""Blocks along the rows that follow each other, before those of the next columns: they share a tile
of B in the second-level cache.
"""
MIN_EXTENT = 64
"""The rows and columns of the smallest tile; a smaller product would be padding for the most part.
"""
STRIDE_BYTES = 16
"""The copy engine takes rows of operands that are multiples of this."""
MAX_RANK = 5


class WarpgroupTiles:
    """Tiles products by blocks and warpgroups, with the whole reduction as one instruction.

    for i, j, k in ...:         for bi, bj in ...:  # blockIdx.x, in groups of rows
        C[i, j] += ...    ->        for w in ...:  # threadIdx.y
                                        for i, j, k in ...:  # wgmma.m64nNk16.bf16.f32
                                            c[i, j] += A[...] * B[...]
                                        C[...] = f(c)

    It takes products of 16-bit floats with sums of float32, whose operands are arrays of rows of a
    multiple of 16 bytes: the copy engine can't gather the pixels of a convolution. Extents need not
    be multiples of tiles. In a second sketch, each multiprocessor has one block, which computes
    several tiles: it fetches the next one during the epilogue of the last one. The sketch without
    warpgroups remains.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Add sketches for the products that warpgroups compute."""
        if not draft.gpu.limits.has_wgmma:
            return [draft]
        gpu = draft.gpu.gpu or nearest_gpu(draft.gpu.arch)
        forks = [
            self._scheduled(draft.fork("warpgroup_tiles"), None),
            self._scheduled(draft.fork("persistent_tiles"), gpu.num_sms),
        ]
        return [*(fork for fork in forks if fork is not None), draft]

    def _scheduled(self, fork: SketchBuilder, num_blocks: int | None) -> SketchBuilder | None:
        """Schedule the products of a draft; return None if there are none.

        Args:
            fork: The draft.
            num_blocks: The blocks that share all tiles; None if each has one.
        """
        has_any = False
        for name in fork.block_facts():
            # An epilogue of an earlier product is no block of its reader any more.
            facts = fork.block_facts().get(name)
            noted = None if facts is None else find_warpgroup_product(fork, facts)
            if noted is None or name in fork.scheduled:
                continue
            try:
                with fork.schedule.verified_once():
                    schedule_product(fork, noted, num_blocks)
            except ScheduleError:
                return None
            has_any = True
        return fork if has_any else None


@dataclass(frozen=True)
class NotedProduct:
    """A product of matrices, and the note of the instruction that computes it."""

    product: MatrixProduct
    note: str


def find_warpgroup_product(draft: SketchBuilder, facts: BlockFacts) -> NotedProduct | None:
    """Return the product that a block computes, if warpgroups can compute it."""
    product = find_matrix_product(facts)
    if product is None or not product.is_plain:
        return None
    body = block_of(draft, facts.name).body
    factors = widened_factors(body) if isinstance(body, Store) else None
    if factors is None:
        return None
    dtypes = {load.buffer.dtype for load in factors}
    notes = {i.note for i in WGMMA_INSTRUCTIONS.values() if {i.operand} == dtypes}
    is_large = min(product.extent(product.rows), product.extent(product.columns)) >= MIN_EXTENT
    if not (notes and is_large and _can_fetch(product.left) and _can_fetch(product.right)):
        return None
    (note,) = notes
    return NotedProduct(product, note)


def _can_fetch(read: TensorAccess) -> bool:
    row_bytes = read.shape[-1] * read.item_bytes
    return row_bytes % STRIDE_BYTES == 0 and len(read.shape) <= MAX_RANK


def schedule_product(draft: SketchBuilder, noted: NotedProduct, num_blocks: int | None) -> None:
    """Tile the loops, and place the epilogue.

    Args:
        draft: The draft.
        noted: The product.
        num_blocks: The blocks that share all tiles; None if each has one.
    """
    schedule, product, facts = draft.schedule, noted.product, noted.product.facts
    (row,), (column,), (step,) = product.rows, product.columns, product.steps
    epilogue = _epilogue(draft, facts)
    loops = draft.loops(facts.name)
    num_rows, num_columns = product.extent(product.rows), product.extent(product.columns)
    output = draft.block_facts()[draft.block_name(epilogue)].write
    row_choices = _up_to(ROWS, num_rows, max(CONSUMERS))
    consumer_choices = _up_to(CONSUMERS, num_rows, max(row_choices))
    block_rows = max(row_choices) * max(consumer_choices)
    rows, rows_column = draft.choose(row_choices)
    consumers, consumers_column = draft.choose(consumer_choices)
    group, group_column = draft.choose(_up_to(GROUPS, num_rows, block_rows))
    columns, columns_column = draft.choose(_up_to(COLUMNS, num_columns, 1))
    stages, stages_column = draft.choose(STAGE_COUNTS)
    group_i, block_i, warpgroup, i = schedule.split(loops[row], [None, group, consumers, rows])
    block_j, j = schedule.split(loops[column], [None, columns])
    outer = [*(loops[index] for index in product.batch), group_i, block_j, block_i]
    schedule.reorder(*outer, warpgroup, i, j, loops[step])
    block = schedule.fuse(*outer)
    schedule.bind(warpgroup, "threadIdx.y")
    schedule.reverse_compute_at(epilogue, warpgroup, preserve_unit_loops=True)
    # The epilogue takes the tiles of the product first: conditions on tiles would hide them.
    if num_blocks is not None:
        turn, block = schedule.split(block, [None, num_blocks])
        schedule.reorder(block, turn)
    schedule.bind(block, "blockIdx.x")
    update = schedule.get_block(facts.name)
    draft.scheduled.add(draft.block_name(schedule.decompose_reduction(update, i)))
    draft.scheduled |= {facts.name, draft.block_name(update)}
    schedule.annotate(i, DEVICE_INSTRUCTION, noted.note)
    schedule.annotate(i, STAGES, stages)
    sizes = (output.size_bytes, *(read.size_bytes for read in facts.reads))
    extents = (num_rows, num_columns, product.extent(product.steps))
    is_persistent = num_blocks is not None
    tile = WarpgroupTile(
        noted.note, (row, column, step), extents, sizes, stages_column, is_persistent
    )
    levels = {
        row: {BLOCK: group_column, THREAD: consumers_column, REGISTER: rows_column},
        column: {REGISTER: columns_column},
    }
    rest = {row: BLOCK, column: BLOCK, step: CHUNK}
    draft.note(facts, levels, rest, tensor_tile=tile)


def _epilogue(draft: SketchBuilder, facts: BlockFacts) -> BlockRV:
    """Keep the sums in registers; return the block that reads them."""
    before = set(draft.block_facts())
    block = epilogue_of(draft, facts, ACCUMULATOR)
    if draft.block_name(block) in before:
        draft.schedule.set_scope(draft.schedule.get_block(facts.name), 0, ACCUMULATOR)
    return block


def _up_to(values: tuple[int, ...], extent: int, unit: int) -> list[int]:
    """Return the values whose product with a unit is not too large; the smallest if all are."""
    return [value for value in values if unit * value <= extent] or [min(values)]
