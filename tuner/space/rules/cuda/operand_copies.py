"""Copies of operands into shared memory, by all threads of a block together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.passes.common.local_stages import KEY as LOCAL_STAGE
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV, TermRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.cuda.chunk_pipelines import ChunkPipeline
from tuner.space.rules.sketch_builder import SketchBuilder

VECTOR = 4
"""Elements of four bytes that one instruction moves: 16 bytes."""
WIDE = 2 * VECTOR
"""Neighbours that each thread reads as two vectors, if a copy is wide."""
Size: TypeAlias = int | ExprRV | TermRV
NUM_THREAD_AXES = 3
ASYNC_BYTES = (4, 8, 16)
"""The sizes of `cp.async`."""
_LENGTHS = (VECTOR, 8, 2, 1)
_BANK_BYTES = 128
_PADDING_BYTES = 16
"""Padding of transposed rows: they begin in different banks, and vectors stay aligned."""


@dataclass(frozen=True)
class OperandCopy:
    """The copy of an operand, and its layout in shared memory.

    The last dimension is one along which each thread reads neighbours: an operand whose rows run
    along the reduction is transposed, and its rows are padded. In a wide copy, each row holds the
    first halves of the eights of neighbours, then the second halves:

        S[k, j]   ->   S[k, j % 8 // 4, j // 8, j % 4]

    Neighbouring threads, each of which reads a whole half at once, then read neighbouring vectors,
    without conflicts of banks.

    Attributes:
        facts: The block that reads the operand.
        read: The operand.
        tiled: The spatial axes that threads share.
        wide_axis: The axis along which each thread reads `WIDE` neighbours, if any.
        pipeline: How the elements of later pieces arrive.
        gathered: The elements that lie together in memory, if the copy gathers them from an array
            with another layout.
    """

    facts: BlockFacts
    read: TensorAccess
    tiled: Sequence[int]
    wide_axis: int | None = None
    pipeline: ChunkPipeline = ChunkPipeline.NONE
    gathered: int | None = None

    @property
    def last(self) -> int:
        """Return the dimension of the operand that is the last one in shared memory."""
        end = len(self.read.shape) - 1
        axes = [axis for axis, step in enumerate(self.read.coefficients[end]) if step]
        if any(not self.facts.axes[axis].is_reduction for axis in axes):
            return end
        dims = [dimension(self.read, axis) for axis in reversed(self.tiled)]
        return next((dim for dim in dims if dim is not None), end)

    @property
    def is_transposed(self) -> bool:
        """Return whether the last dimension is another one than in global memory."""
        return self.last != len(self.read.shape) - 1

    @property
    def is_wide(self) -> bool:
        """Return whether each thread reads `WIDE` neighbours of this operand."""
        return self.wide_axis is not None and dimension(self.read, self.wide_axis) == self.last

    def _vector_lengths(self, draft: SketchBuilder) -> list[int]:
        """Return the lengths of vectors in which global memory may be read; 1 is one of them."""
        shape, items = self.read.shape, self.read.item_bytes
        is_plain = sum(map(abs, self.read.coefficients[-1])) == 1
        longest = draft.gpu.limits.max_vector_bytes // items if is_plain else 1
        return [n for n in _LENGTHS if n <= longest and shape[-1] % n == 0]

    def place(self, draft: SketchBuilder, at: LoopRV) -> PlacedCopy:
        """Copy the elements that one iteration of a loop reads, for now by each thread."""
        schedule, producer = draft.schedule, self._producer(draft)
        is_async = self._is_async(draft, producer)
        lengths = self._lengths(draft, producer, is_async=is_async)
        block = schedule.get_block(self.facts.name)
        copy = schedule.cache_read(block, self.read.buffer, "shared")
        draft.scheduled.add(draft.block_name(copy))
        if producer is not None:
            schedule.compute_inline(schedule.get_block(producer.name))
        schedule.compute_at(copy, at, preserve_unit_loops=True)
        has_local_stage = self.pipeline is not ChunkPipeline.NONE and not is_async
        return PlacedCopy(self, copy, tuple(lengths), has_local_stage)

    def add(self, draft: SketchBuilder, at: LoopRV, threads: Sequence[Size]) -> BlockRV:
        """Copy the elements that one iteration of a loop reads; return the block that copies.

        Args:
            at: The loop.
            threads: The numbers of threads along z, y and x, or along the last ones of these.
        """
        copy = self.place(draft, at)
        copy.distribute(draft, threads)
        return copy.block

    def _is_async(self, draft: SketchBuilder, producer: BlockFacts | None) -> bool:
        """Return whether asynchronous copies fill the piece: without arithmetic on elements."""
        if self.pipeline is not ChunkPipeline.ASYNC:
            return False
        if producer is not None and (producer.flops_per_point or producer.operations.convert):
            return False
        is_single = self.is_transposed or producer is not None
        length = 1 if is_single else max(self._vector_lengths(draft))
        return length * self.read.item_bytes >= min(ASYNC_BYTES)

    def _lengths(
        self, draft: SketchBuilder, producer: BlockFacts | None, *, is_async: bool
    ) -> list[int]:
        """Return the lengths of the vectors in which the piece may be copied."""
        lengths = self._vector_lengths(draft) if producer is None else [1]
        if self.gathered is not None:
            lengths = [n for n in _LENGTHS if n <= self.gathered]
        if not is_async:
            return lengths
        if self.is_transposed:
            return [1]  # neighbours in global memory are not neighbours in shared memory
        return [n for n in lengths if n * self.read.item_bytes in ASYNC_BYTES]

    def _producer(self, draft: SketchBuilder) -> BlockFacts | None:
        """Return the spatial block that makes the operand for this block alone, if there is one."""
        for name, producer in draft.block_facts().items():
            if (
                producer.write.buffer == self.read.buffer
                and name not in draft.scheduled
                and not producer.is_reduction
                and draft.is_intermediate(name)
                and draft.consumers(name) == [self.facts.name]
            ):
                return producer
        return None


@dataclass(frozen=True)
class PlacedCopy:
    """The copy of an operand at a loop of its reader.

    Attributes:
        operand: The operand.
        block: The block that copies it to shared memory.
        lengths: The lengths of the vectors in which it may be copied.
        has_local_stage: Whether elements of later pieces arrive in registers.
    """

    operand: OperandCopy
    block: BlockRV
    lengths: tuple[int, ...]
    has_local_stage: bool

    def add_fragment(self, draft: SketchBuilder, at: LoopRV) -> None:
        """Load what a thread needs at once from shared memory into registers, as vectors.

        Only a copy that no thread has a part of yet is proved to hold all that the loads need.

        Args:
            at: The loop over the steps of the reduction.
        """
        schedule = draft.schedule
        reader = schedule.get_block(self.operand.facts.name)
        fragment = schedule.cache_read(reader, draft.written_buffer(self.block), "local")
        draft.scheduled.add(draft.block_name(fragment))
        schedule.compute_at(fragment, at, preserve_unit_loops=True)
        loops = self._own_loops(draft, fragment)
        last = loops.pop(self.operand.last)
        rest, vector = schedule.split(last, [None, VECTOR])
        schedule.reorder(*loops, rest, vector)
        for loop in (*loops, rest):
            schedule.unroll(loop)
        schedule.vectorize(vector)

    def distribute(self, draft: SketchBuilder, threads: Sequence[Size]) -> None:
        """Let all threads copy vectors, and store them in the operand's layout.

        Args:
            threads: The numbers of threads along z, y and x, or along the last ones of these.
        """
        schedule, operand = draft.schedule, self.operand
        loops = self._own_loops(draft, self.block)
        if operand.is_wide and not operand.is_transposed and VECTOR in self.lengths:
            # Vectors end at halves, so their places are simple indices.
            *cut, vector = schedule.split(loops[-1], [None, WIDE // VECTOR, VECTOR])
        else:
            length, _ = draft.choose(self.lengths)
            *cut, vector = schedule.split(loops[-1], [None, length])
        fused = schedule.fuse(*loops[:-1], *cut)
        _, *thread_loops = schedule.split(fused, [None, *threads])
        schedule.vectorize(vector)
        self._lay_out(draft)
        bind_threads(schedule, thread_loops)
        if self.has_local_stage:
            schedule.annotate(self.block, LOCAL_STAGE, 1)

    def _own_loops(self, draft: SketchBuilder, block: BlockRV) -> list[LoopRV]:
        """Return the loops over the dimensions of a copy, which are its innermost ones."""
        return draft.loops(block)[-len(self.operand.read.shape) :]

    def _lay_out(self, draft: SketchBuilder) -> None:
        operand = self.operand
        names = [f"d{number}" for number in range(len(operand.read.shape))]
        order = [name for number, name in enumerate(names) if number != operand.last]
        last = names[operand.last]
        if operand.is_wide:
            halves = [f"{last} % {WIDE} // {VECTOR}", f"{last} // {WIDE}", f"{last} % {VECTOR}"]
            order += halves
        elif operand.is_transposed:
            order.append(last)
        else:
            return
        text = f"lambda {', '.join(names)}: ({', '.join(order)})"
        draft.schedule.transform_layout(self.block, ("write", 0), text)
        items = operand.read.item_bytes
        if operand.is_wide:
            # The stores of neighbouring halves go to different banks.
            factor, offset = _BANK_BYTES // items, _BANK_BYTES // 2 // items
            draft.schedule.storage_align(self.block, 0, -3, factor, offset)
        else:
            factor, offset = _BANK_BYTES // items, _PADDING_BYTES // items
            draft.schedule.storage_align(self.block, 0, -2, factor, offset)


def bind_threads(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Bind up to three loops to axes of threads, the innermost to `threadIdx.x`."""
    for loop, axis in zip(reversed(loops), "xyz"[:NUM_THREAD_AXES], strict=False):
        schedule.bind(loop, f"threadIdx.{axis}")
