"""Copies of operands into shared memory, by all threads of a block together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.sketch_builder import SketchBuilder

VECTOR = 4
"""Elements of four bytes that one instruction moves: 16 bytes."""
WIDE = 2 * VECTOR
"""Neighbours that each thread reads as two vectors, if a copy is wide."""
NUM_THREAD_AXES = 3
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
    """

    facts: BlockFacts
    read: TensorAccess
    tiled: Sequence[int]
    wide_axis: int | None = None

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

    def vector_lengths(self, draft: SketchBuilder) -> list[int]:
        """Return the lengths of vectors in which global memory may be read; 1 is one of them."""
        shape, items = self.read.shape, self.read.item_bytes
        is_plain = sum(map(abs, self.read.coefficients[-1])) == 1
        longest = draft.gpu.limits.max_vector_bytes // items if is_plain else 1
        return [n for n in _LENGTHS if n <= longest and shape[-1] % n == 0]

    def add(
        self, draft: SketchBuilder, at: LoopRV, threads: Sequence[ExprRV], depth: int
    ) -> BlockRV:
        """Copy the elements that one iteration of a loop reads; return the block that copies.

        Args:
            at: The loop.
            threads: The numbers of threads along z, y and x, or along the last ones of these.
            depth: The number of loops around the copy, `at` included.
        """
        schedule = draft.schedule
        producer = _inlined_producer(draft, self.facts, self.read)
        block = schedule.get_block(self.facts.name)
        copy = schedule.cache_read(block, self.read.buffer, "shared")
        draft.scheduled.add(draft.block_name(copy))
        if producer is not None:
            schedule.compute_inline(schedule.get_block(producer))
        schedule.compute_at(copy, at, preserve_unit_loops=True)
        loops = draft.loops(copy)[depth:]
        if self.is_wide and not self.is_transposed:
            # Vectors end at halves, so their places are simple indices.
            *cut, vector = schedule.split(loops[-1], [None, WIDE // VECTOR, VECTOR])
        else:
            lengths = self.vector_lengths(draft) if producer is None else [1]
            length, _ = draft.choose(lengths)
            *cut, vector = schedule.split(loops[-1], [None, length])
        fused = schedule.fuse(*loops[:-1], *cut)
        _, *thread_loops = schedule.split(fused, [None, *threads])
        schedule.vectorize(vector)
        self._lay_out(draft, copy)
        bind_threads(schedule, thread_loops)
        return copy

    def _lay_out(self, draft: SketchBuilder, copy: BlockRV) -> None:
        names = [f"d{number}" for number in range(len(self.read.shape))]
        order = [name for number, name in enumerate(names) if number != self.last]
        last = names[self.last]
        if self.is_wide:
            halves = [f"{last} % {WIDE} // {VECTOR}", f"{last} // {WIDE}", f"{last} % {VECTOR}"]
            order += halves
        elif self.is_transposed:
            order.append(last)
        else:
            return
        text = f"lambda {', '.join(names)}: ({', '.join(order)})"
        draft.schedule.transform_layout(copy, ("write", 0), text)
        if self.is_transposed and not self.is_wide:
            factor, offset = _BANK_BYTES, _PADDING_BYTES
            items = self.read.item_bytes
            draft.schedule.storage_align(copy, 0, -2, factor // items, offset // items)


def bind_threads(schedule: Schedule, loops: Sequence[LoopRV]) -> None:
    """Bind up to three loops to axes of threads, the innermost to `threadIdx.x`."""
    for loop, axis in zip(reversed(loops), "xyz"[:NUM_THREAD_AXES], strict=False):
        schedule.bind(loop, f"threadIdx.{axis}")


def _inlined_producer(draft: SketchBuilder, facts: BlockFacts, read: TensorAccess) -> str | None:
    """Return the spatial block that makes an operand for this block alone, if there is one."""
    for name, producer in draft.block_facts().items():
        if (
            producer.write.buffer == read.buffer
            and name not in draft.scheduled
            and not producer.is_reduction
            and draft.is_intermediate(name)
            and draft.consumers(name) == [facts.name]
        ):
            return name
    return None
