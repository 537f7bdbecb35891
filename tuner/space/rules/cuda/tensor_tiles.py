"""The rule for products on tensor cores: a tile of the output for each block and for each warp."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from compiler.ir.core.scopes import ACCUMULATOR, MATRIX_A, MATRIX_B
from compiler.passes.common.local_stages import KEY as LOCAL_STAGE
from compiler.passes.device.swizzle import KEY as PERMUTED_LAYOUT
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from compiler.target.gpus import WARP_SIZE
from compiler.target.tensor_cores import MMA_INSTRUCTIONS, MmaInstruction
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.cuda.chunk_pipelines import pipeline_chunks
from tuner.space.rules.cuda.lane_copies import VECTOR_BYTES, share_copy
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, REGISTER, STEP, THREAD
from tuner.space.rules.cuda.operand_copies import ASYNC_BYTES
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.matrix_products import (
    MatrixProduct,
    block_of,
    find_matrix_product,
    fuse_axes,
    inline_copies,
    inline_results,
    make_plain,
    pad,
)
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.tensor_tile import TensorTile

WARPS_DOWN = (2, 1)
WARPS_ACROSS = (2, 4, 1)
"""Warps along an axis: at most 256 threads, so that each may use 255 registers."""
WARP_ROWS = (4, 2, 1)
WARP_COLUMNS = (8, 4, 2)
"""Tiles of an instruction in that of a warp: up to 64 by 64 sums, 128 registers of a lane.

`ldmatrix` loads two tiles of columns at once.
"""
STEPS = (2, 4)
"""Instructions along the reduction in a chunk: rows in shared memory of 64 or 128 bytes."""
MIN_EXTENT = 8
"""A product with fewer rows, columns or steps would be padding for the most part. Chosen."""
MAX_PADDING = 0.25
"""The share of an extent that padding to larger tiles may add. Chosen."""
CHUNKS_AHEAD = (2, 3, 1)
"""Chunks that asynchronous copies are ahead; the filter drops those that do not fit. Chosen."""
GROUPED_ROWS = (1, 4, 8)
"""Rows of blocks that share the columns of a product in the second-level cache. Chosen."""


class TensorTiles:
    """Tiles products by blocks, warps and instructions of tensor cores.

    for i, j, k in ...:         for bi, bj in ...:  # blockIdx.x
        C[i, j] += ...    ->        for wi, wj in ...:  # threadIdx.z, y
                                        for k0 in ...:
                                            A_shared, B_shared = ...  # permuted, asynchronous
                                            for k1 in ...:
                                                a, b = ...  # fragments
                                                for i1, j1 in ...:
                                                    mma(c, a, b)
                                        C[...] = f(c)

    It takes products of matrices whose types an instruction has, in arrays of any layout.
    Convolutions are such products, too. Extents that no tile divides are padded with zeros in
    shared memory, and the epilogue leaves the padding out.
    Products of float32 are left alone: tf32 would round their operands. Both sketches, with and
    without tensor cores, remain.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Add a sketch for the products that tensor cores compute."""
        fork = draft.fork("tensor_tiles")
        has_any = False
        for name in draft.block_facts():
            # An epilogue of an earlier product is no block of its reader any more.
            facts = fork.block_facts().get(name)
            product = None if facts is None else find_product(fork, facts)
            if product is None or name in fork.scheduled:
                continue
            try:
                with fork.schedule.verified_once():
                    _TensorScheduler(fork, *product).run()
            except ScheduleError:
                return [draft]
            has_any = True
        return [fork, draft] if has_any else [draft]


def find_product(
    draft: SketchBuilder, facts: BlockFacts
) -> tuple[MatrixProduct, MmaInstruction] | None:
    """Return the product that a block computes, and the instruction that computes tiles of it."""
    product = find_matrix_product(facts)
    instruction = None if product is None else _instruction(draft, facts)
    if product is None or instruction is None:
        return None
    groups = (product.rows, product.columns, product.steps)
    is_large = all(product.extent(group) >= MIN_EXTENT for group in groups)
    return (product, instruction) if is_large else None


def sync_intrinsic(product: MatrixProduct, instruction: MmaInstruction) -> str:
    """Return the name of the intrinsic of an instruction, for the layout of a product."""
    result, operand = instruction.ptx_types
    shape = "x".join(map(str, instruction.shape))
    suffix = "_trans" if product.right_groups[-1] == product.steps else ""
    return f"mma_sync_{shape}_{operand}{operand}{result}{suffix}"


def _instruction(draft: SketchBuilder, facts: BlockFacts) -> MmaInstruction | None:
    """Return the instruction with the types of a block; tf32 has those of no program."""
    block = block_of(draft, facts.name)
    dtypes = {region.buffer.name: region.buffer.dtype for region in (*block.reads, *block.writes)}
    operands = {dtypes[read.buffer] for read in facts.reads}
    for instruction in MMA_INSTRUCTIONS.values():
        types = ({instruction.operand}, instruction.accumulator)
        is_available = instruction.min_capability <= draft.gpu.limits.capability
        if types == (operands, dtypes[facts.write.buffer]) and instruction.operand != "float32":
            return instruction if is_available else None
    return None


@dataclass
class _TensorScheduler:
    """Schedules one product."""

    draft: SketchBuilder
    product: MatrixProduct
    instruction: MmaInstruction
    columns: dict[int, dict[int, int]] = field(default_factory=dict)

    def run(self) -> None:
        """Tile the loops, stage the operands, and place the epilogue."""
        draft, schedule, name = self.draft, self.draft.schedule, self.product.facts.name
        original = self.product
        lengths = [
            original.vector_length(read, groups, VECTOR_BYTES // read.item_bytes)
            for read, groups in original.layouts[:2]
        ]
        epilogue = self._form_matrices()
        output = draft.block_facts()[draft.block_name(epilogue)].write
        m, n, k = self.instruction.shape
        loops, product = draft.loops(name), self.product
        (row,), (column,), (sum_axis,) = product.rows, product.columns, product.steps
        block_i, warp_i, i, inner_i, warps_i = self._split(loops, row, m, WARPS_DOWN, WARP_ROWS)
        block_j, warp_j, j, inner_j, warps_j = self._split(
            loops, column, n, WARPS_ACROSS, WARP_COLUMNS
        )
        num_steps = product.extent(product.steps) // k
        chunk_steps, step_column = draft.choose(_dividing(STEPS, num_steps))
        self.columns[sum_axis] = {STEP: step_column}
        chunk, step, inner_k = schedule.split(loops[sum_axis], [None, chunk_steps, k])
        outer = [*(loops[index] for index in product.batch), *self._order(block_i, block_j)]
        schedule.reorder(*outer, warp_i, warp_j, chunk, step, i, j, inner_i, inner_j, inner_k)
        block = schedule.fuse(*outer)
        schedule.reverse_compute_at(epilogue, warp_j, preserve_unit_loops=True)
        schedule.bind(block, "blockIdx.x")
        schedule.bind(warp_i, "threadIdx.z")
        schedule.bind(warp_j, "threadIdx.y")
        copies = inline_copies(draft, product)
        threads: list[ExprRV | int] = [warps_i, warps_j, WARP_SIZE]
        operands = (product.left, product.right)
        has_local_stage = [
            length * read.item_bytes < min(ASYNC_BYTES)
            for read, length in zip(operands, lengths, strict=True)
        ]
        for number, read in enumerate(operands):
            shared = self._stage(
                read,
                (MATRIX_A, MATRIX_B)[number],
                copies.get(read.buffer),
                (chunk, step),
                [*threads, lengths[number]],
            )
            if has_local_stage[number]:
                schedule.annotate(shared, LOCAL_STAGE, 1)
        update = schedule.get_block(name)
        draft.scheduled.add(draft.block_name(schedule.decompose_reduction(update, chunk)))
        # Registers hold one chunk.
        chunks = CHUNKS_AHEAD[-1:] if any(has_local_stage) else CHUNKS_AHEAD
        pipeline_chunks(schedule, chunk, has_local_stage, draft.choose(chunks)[0])
        tile = schedule.blockize(inner_i)
        draft.scheduled |= {name, draft.block_name(update), draft.block_name(tile)}
        schedule.tensorize(tile, sync_intrinsic(self.product, self.instruction))
        self._note(original, output)

    def _note(self, original: MatrixProduct, output: TensorAccess) -> None:
        """Record the decisions, and what the product reads and writes in global memory.

        Args:
            original: The product before it became one of matrices.
            output: The access of the epilogue to its result.
        """
        product = self.product
        (row,), (column,), (sum_axis,) = product.rows, product.columns, product.steps
        read_bytes = {
            product.left: original.left.size_bytes,
            product.right: original.right.size_bytes,
        }
        tensor_tile = TensorTile(
            self.instruction.name,
            (row, column, sum_axis),
            tuple(
                original.extent(axes) for axes in (original.rows, original.columns, original.steps)
            ),
            (output.size_bytes, *(read_bytes[read] for read in product.facts.reads)),
        )
        rest = {row: BLOCK, column: BLOCK, sum_axis: CHUNK}
        self.draft.note(product.facts, self.columns, rest, tensor_tile=tensor_tile)

    def _form_matrices(self) -> BlockRV:
        """Make the product one of padded matrices; return the block that reads the sums."""
        draft, schedule, name = self.draft, self.draft.schedule, self.product.facts.name
        before = set(draft.block_facts())
        epilogue = elementwise_consumer(draft, self.product.facts)
        if not self.product.is_plain:
            if epilogue is not None:
                self.product = fuse_axes(draft, epilogue, self.product)
            self.product = make_plain(draft, self.product)
        self.product = pad(draft, self.product, self._multiples())
        epilogue = inline_results(draft, name, before, epilogue)
        if epilogue is None:
            block = schedule.cache_write(schedule.get_block(name), 0, ACCUMULATOR)
            self.product = replace(self.product, facts=draft.block_facts()[name])
        else:
            block = schedule.get_block(epilogue)
            schedule.set_scope(schedule.get_block(name), 0, ACCUMULATOR)
        draft.scheduled.add(draft.block_name(block))
        return block

    def _multiples(self) -> tuple[int, int, int]:
        """Return the numbers that are to divide the rows, the columns and the steps."""
        product, (m, n, k) = self.product, self.instruction.shape
        return (
            _multiple(product.extent(product.rows), m, (WARPS_DOWN, WARP_ROWS)),
            _multiple(product.extent(product.columns), n, (WARPS_ACROSS, WARP_COLUMNS)),
            _multiple(product.extent(product.steps), k, (STEPS,)),
        )

    def _order(self, block_i: LoopRV, block_j: LoopRV) -> tuple[LoopRV, ...]:
        """Return the loops over blocks; groups of rows use the same columns at the same time."""
        product, m = self.product, self.instruction.shape[0]
        (row,) = product.rows
        rows = product.extent(product.rows) // (m * max(WARPS_DOWN) * max(WARP_ROWS))
        sizes = [size for size in GROUPED_ROWS if size == 1 or (rows and rows % size == 0)]
        if len(sizes) == 1:
            return block_i, block_j
        size, self.columns[row][BLOCK] = self.draft.choose(sizes)
        group, block_i = self.draft.schedule.split(block_i, [None, size])
        return group, block_j, block_i

    def _split(
        self,
        loops: list[LoopRV],
        axis: int,
        tile: int,
        warp_counts: tuple[int, ...],
        of_warp: tuple[int, ...],
    ) -> tuple[LoopRV, LoopRV, LoopRV, LoopRV, ExprRV]:
        """Split an axis into blocks, warps, tiles of a warp, and the elements of a tile."""
        tiles = self.product.facts.axes[axis].extent // tile
        per_warp = _dividing(of_warp, tiles)
        warps = _dividing(warp_counts, tiles // max(per_warp))
        num_warps, warp_column = self.draft.choose(warps)
        num_tiles, tile_column = self.draft.choose(per_warp)
        self.columns[axis] = {THREAD: warp_column, REGISTER: tile_column}
        parts = self.draft.schedule.split(loops[axis], [None, num_warps, num_tiles, tile])
        block, warp, tile_loop, inner = parts
        return block, warp, tile_loop, inner, num_warps

    def _stage(
        self,
        read: TensorAccess,
        scope: str,
        copy: str | None,
        loops: tuple[LoopRV, LoopRV],
        parts: list[ExprRV | int],
    ) -> BlockRV:
        """Copy an operand to shared memory for a chunk, and to fragments for a step of it.

        Args:
            copy: The block that makes the operand, which becomes a part of the copy.
            loops: The loops over chunks and over the steps of a chunk.
            parts: The warps down and across, the lanes, and the elements of a lane's vector.

        Returns:
            The copy to shared memory.
        """
        draft, schedule = self.draft, self.draft.schedule
        block = schedule.get_block(self.product.facts.name)
        fragment = schedule.cache_read(block, read.buffer, scope)
        if read is self.product.left and self.product.left_groups[-1] == self.product.rows:
            dims = [f"d{number}" for number in range(len(read.shape))]
            swapped = [*dims[:-2], dims[-1], dims[-2]]
            text = f"lambda {', '.join(dims)}: ({', '.join(swapped)})"
            schedule.transform_layout(fragment, ("write", 0), text)
        chunk, step = loops
        schedule.compute_at(fragment, step, preserve_unit_loops=True)
        shared = schedule.cache_read(fragment, read.buffer, "shared")
        if copy is not None:
            schedule.compute_inline(schedule.get_block(copy))
        schedule.compute_at(shared, chunk, preserve_unit_loops=True)
        draft.scheduled |= {draft.block_name(fragment), draft.block_name(shared)}
        share_copy(draft, shared, len(read.shape), parts)
        schedule.annotate(shared, PERMUTED_LAYOUT, 1)
        return shared


def _dividing(values: tuple[int, ...], extent: int) -> list[int]:
    return [value for value in values if extent % value == 0]


def _multiple(extent: int, unit: int, parts: tuple[tuple[int, ...], ...]) -> int:
    """Return the number of elements that the largest tiles hold for which padding is short.

    Args:
        extent: The number of elements.
        unit: The elements of an instruction.
        parts: The numbers of instructions in a tile: the product of one choice of each.
    """
    most, least = unit * prod(map(max, parts)), unit * prod(map(min, parts))
    while most > least and -(-extent // most) * most > (1 + MAX_PADDING) * extent:
        most //= 2
    return most
