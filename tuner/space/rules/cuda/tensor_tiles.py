"""The rule for products on tensor cores: a tile of the output for each block and for each warp."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.nodes import Block, BlockRealize
from compiler.passes.device.swizzle import KEY as PERMUTED_LAYOUT
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import ExprRV, LoopRV
from compiler.target.gpus import WARP_SIZE
from compiler.target.tensor_cores import MMA_INSTRUCTIONS, MmaInstruction
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.cuda.epilogue import register_epilogue
from tuner.space.rules.sketch_builder import SketchBuilder

WARPS_DOWN = (2, 1)
WARPS_ACROSS = (2, 4, 1)
"""Warps along an axis: at most 256 threads, so that each may use 255 registers."""
WARP_ROWS = (4, 2)
WARP_COLUMNS = (8, 4)
"""Tiles of an instruction in that of a warp: up to 64 by 64 sums, 128 registers of a lane."""
STEPS = (2, 4)
"""Instructions along the reduction in a chunk: rows in shared memory of 64 or 128 bytes.

With fewer tiles or steps, some threads would have no vector to copy.
"""
VECTOR_BYTES = 16
MAX_STAGES = 3
"""Chunks in shared memory at once: one is computed while two are copied. Chosen."""
MAX_CHUNK_BYTES = 48 << 10
"""The largest chunk: 128 rows of A and 256 columns of B, 128 bytes of each."""


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

    It takes products whose types an instruction has, and whose extents are multiples of the least
    tile of a warp: 32 by 32 sums.
    Products of float32 are left alone: tf32 would round their operands. Both sketches, with and
    without tensor cores, remain.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Add a sketch for the products that tensor cores compute."""
        fork = draft.fork("tensor_tiles")
        has_any = False
        for name, facts in draft.block_facts().items():
            product = find_product(draft, facts)
            if product is None or name in draft.scheduled:
                continue
            try:
                _TensorScheduler(fork, product).run()
            except ScheduleError:
                return [draft]
            has_any = True
        return [fork, draft] if has_any else [draft]


@dataclass(frozen=True)
class TensorProduct:
    """A sum of products of matrices, and its axes by their part.

    Attributes:
        instruction: The instruction that computes a tile of it.
        left: The operand with the rows of the output.
        right: The operand with the columns of the output.
        row: The axis of the rows.
        column: The axis of the columns, along which the output is contiguous.
        step: The axis that is summed over.
        batch: The other axes.
        is_transposed: Whether the rows of the right operand run along the step.
    """

    facts: BlockFacts
    instruction: MmaInstruction
    left: TensorAccess
    right: TensorAccess
    row: int
    column: int
    step: int
    batch: tuple[int, ...]
    is_transposed: bool

    @property
    def sync(self) -> str:
        """Return the name of the intrinsic of the instruction."""
        result, operand = self.instruction.ptx_types
        shape = "x".join(map(str, self.instruction.shape))
        suffix = "_trans" if self.is_transposed else ""
        return f"mma_sync_{shape}_{operand}{operand}{result}{suffix}"


def find_product(draft: SketchBuilder, facts: BlockFacts) -> TensorProduct | None:
    """Return the product that a block computes, if an instruction computes tiles of it."""
    steps = [index for index, axis in enumerate(facts.axes) if axis.is_reduction]
    if not facts.is_affine or len(facts.reads) != 2 or len(steps) != 1:
        return None
    instruction = _instruction(draft, facts)
    if instruction is None:
        return None
    spatial = [index for index, axis in enumerate(facts.axes) if not axis.is_reduction]
    column = next((index for index in spatial if facts.write.strides[index] == 1), None)
    rights = [read for read in facts.reads if column is not None and read.strides[column]]
    if column is None or len(rights) != 1:
        return None
    (right,) = rights
    left = next(read for read in facts.reads if read is not right)
    rows = [index for index in spatial if left.strides[index] and not right.strides[index]]
    if not rows or not all(read.strides[steps[0]] for read in facts.reads):
        return None
    row = rows[-1]
    is_tiled = left.strides[steps[0]] == 1 and 1 in (right.strides[column], right.strides[steps[0]])
    extents = [facts.axes[index].extent for index in (row, column, steps[0])]
    tiles = (min(WARP_ROWS), min(WARP_COLUMNS), min(STEPS))
    sizes = [t * n for t, n in zip(tiles, instruction.shape, strict=True)]
    if not is_tiled or any(n % size for n, size in zip(extents, sizes, strict=True)):
        return None
    batch = tuple(index for index in spatial if index not in (row, column))
    is_transposed = right.strides[steps[0]] == 1
    return TensorProduct(
        facts, instruction, left, right, row, column, steps[0], batch, is_transposed
    )


def _instruction(draft: SketchBuilder, facts: BlockFacts) -> MmaInstruction | None:
    """Return the instruction with the types of a block; tf32 has those of no program."""
    realize = draft.schedule.get(draft.schedule.get_block(facts.name))
    assert isinstance(realize, BlockRealize)
    block: Block = realize.block
    dtypes = {region.buffer.name: region.buffer.dtype for region in (*block.reads, *block.writes)}
    operands = {dtypes[read.buffer] for read in facts.reads}
    for instruction in MMA_INSTRUCTIONS.values():
        types = ({instruction.operand}, instruction.accumulator)
        if types == (operands, dtypes[facts.write.buffer]) and instruction.operand != "float32":
            return instruction
    return None


@dataclass
class _TensorScheduler:
    """Schedules one product."""

    draft: SketchBuilder
    product: TensorProduct

    def run(self) -> None:
        """Tile the loops, stage the operands, and place the epilogue."""
        draft, product, schedule = self.draft, self.product, self.draft.schedule
        facts = product.facts
        m, n, k = product.instruction.shape
        epilogue = register_epilogue(draft, facts, "wmma.accumulator")
        loops = draft.loops(facts.name)
        down, across = (WARPS_DOWN, WARP_ROWS), (WARPS_ACROSS, WARP_COLUMNS)
        block_i, warp_i, i, inner_i, warps_i = self._split(loops, product.row, m, *down)
        block_j, warp_j, j, inner_j, warps_j = self._split(loops, product.column, n, *across)
        steps = self._dividing(STEPS, facts.axes[product.step].extent // k)
        chunk_steps, _ = draft.choose(steps)
        chunk, step, inner_k = schedule.split(loops[product.step], [None, chunk_steps, k])
        outer = [*(loops[index] for index in product.batch), block_i, block_j]
        schedule.reorder(*outer, warp_i, warp_j, chunk, step, i, j, inner_i, inner_j, inner_k)
        block = schedule.fuse(*outer)
        schedule.reverse_compute_at(epilogue, warp_j, preserve_unit_loops=True)
        schedule.bind(block, "blockIdx.x")
        schedule.bind(warp_i, "threadIdx.z")
        schedule.bind(warp_j, "threadIdx.y")
        for read, scope in ((product.left, "wmma.matrix_a"), (product.right, "wmma.matrix_b")):
            self._stage(read, scope, chunk, step, (warps_i, warps_j))
        update = schedule.get_block(facts.name)
        draft.scheduled.add(draft.block_name(schedule.decompose_reduction(update, chunk)))
        self._pipeline(chunk)
        tile = schedule.blockize(inner_i)
        draft.scheduled |= {facts.name, draft.block_name(update), draft.block_name(tile)}
        schedule.tensorize(tile, product.sync)

    def _pipeline(self, chunk: LoopRV) -> None:
        """Copy the operands of later chunks while the instructions compute one."""
        schedule, shared_bytes = self.draft.schedule, self.draft.gpu.limits.shared_bytes
        stages = min(MAX_STAGES, shared_bytes // MAX_CHUNK_BYTES)
        schedule.annotate(chunk, "software_pipeline_stage", [0, 0, stages - 1])
        schedule.annotate(chunk, "software_pipeline_order", [0, 1, 2])
        schedule.annotate(chunk, "software_pipeline_async_stages", [0])

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
        per_warp = self._dividing(of_warp, tiles)
        warps = self._dividing(warp_counts, tiles // max(per_warp))
        num_warps, _ = self.draft.choose(warps)
        num_tiles, _ = self.draft.choose(per_warp)
        parts = self.draft.schedule.split(loops[axis], [None, num_warps, num_tiles, tile])
        block, warp, tile_loop, inner = parts
        return block, warp, tile_loop, inner, num_warps

    @staticmethod
    def _dividing(values: tuple[int, ...], extent: int) -> list[int]:
        return [value for value in values if extent % value == 0]

    def _stage(
        self,
        read: TensorAccess,
        scope: str,
        chunk: LoopRV,
        step: LoopRV,
        warps: tuple[ExprRV, ExprRV],
    ) -> None:
        """Copy an operand to shared memory for a chunk, and to fragments for a step of it."""
        draft, schedule = self.draft, self.draft.schedule
        block = schedule.get_block(self.product.facts.name)
        fragment = schedule.cache_read(block, read.buffer, scope)
        schedule.compute_at(fragment, step, preserve_unit_loops=True)
        shared = schedule.cache_read(fragment, read.buffer, "shared")
        schedule.compute_at(shared, chunk, preserve_unit_loops=True)
        draft.scheduled |= {draft.block_name(fragment), draft.block_name(shared)}
        around = len(draft.loops(shared)) - len(read.shape)
        fused = schedule.fuse(*draft.loops(shared)[around:])
        parts = [None, *warps, WARP_SIZE, VECTOR_BYTES // read.item_bytes]
        _, warp_i, warp_j, lane, vector = schedule.split(fused, parts)
        schedule.vectorize(vector)
        schedule.bind(warp_i, "threadIdx.z")
        schedule.bind(warp_j, "threadIdx.y")
        schedule.bind(lane, "threadIdx.x")
        schedule.annotate(shared, PERMUTED_LAYOUT, 1)
