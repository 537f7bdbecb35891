"""Copy the operands of products into panels, in the order of use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compiler.backends.cpu.codegen.operations.dot_instructions import PAIR
from compiler.ir.core.dtypes import DType, bits, is_narrow_float
from compiler.passes.common.tile_buffers import KEY
from compiler.passes.common.widen_buffers import KEY as WIDE_KEY
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, sites
from tuner.space.analysis.product_roles import Operand, Product
from tuner.space.rules.cpu.flat_columns import PIXELS
from tuner.space.rules.cpu.packed.unpacked_weights import pack_constant_sources, unpack_across
from tuner.space.rules.cpu.step_groups import inline_producer
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.rules.winograd_tiles import WINOGRAD

MIN_ROWS = 64
"""Fewer rows use each packed panel of columns only a few times. Chosen."""
WIDE_BITS = 32
"""Narrow floats are multiplied as floats of so many bits."""


@dataclass(frozen=True)
class OperandPanels:
    """The panels of a product.

    Attributes:
        draft: The draft with the product.
        facts: The facts of the product.
        product: Its axes and operands.
        dtypes: The types of the elements of its buffers.
        group: The neighbours along the sum that an instruction multiplies and adds.
        periods: The numbers of neighbours along the sum of which the weights of the right operand
            are unpacked together, the greatest first.
        is_padded: Whether groups do not divide the sum, so that both operands are padded.
    """

    draft: SketchBuilder
    facts: BlockFacts
    product: Product
    dtypes: Mapping[str, DType]
    group: int
    periods: tuple[int, ...]
    is_padded: bool

    @property
    def lanes(self) -> int:
        """Return the number of sums in a vector."""
        return max(1, self.draft.cpu.vector_bits // (8 * self.facts.write.item_bytes))

    @property
    def are_written_by_transform(self) -> bool:
        """Return whether Winograd's transform of the weights writes the panels of columns."""
        right = self.product.right
        is_whole = right.read.shape[right.across] % self.lanes == 0
        return WINOGRAD in self.draft.tags and is_whole

    def pack_right(self, block: BlockRV, loop: LoopRV, width: ExprRV) -> None:
        """Copy the right operand under a loop, unless the block that computes it writes panels."""
        right, schedule = self.product.right, self.draft.schedule
        if not self.are_written_by_transform:
            self.copy(block, right, loop, width)
            return
        blocks = [site.block for site in sites(schedule.func)]
        (writer,) = [b.name for b in blocks if b.writes[0].buffer.name == right.read.buffer]
        schedule.annotate(schedule.get_block(writer), KEY, [0, right.across, width])

    def copy(self, block: BlockRV, operand: Operand, loop: LoopRV, tile: ExprRV) -> None:
        """Copy the elements of an operand that one run of a loop reads into panels, in vectors."""
        draft, schedule = self.draft, self.draft.schedule
        copy = draft.copy_input(block, operand.read.buffer)
        periods = self.periods if operand is self.product.right else ()
        if self.is_padded or periods or PIXELS in draft.tags:
            inline_producer(draft, operand.read.buffer)
        is_across = bool(periods) and pack_constant_sources(draft, copy, operand.across, tile)
        schedule.compute_at(copy, loop, preserve_unit_loops=True)
        loops = draft.loops(copy)[-len(operand.read.shape) :]
        panels, lane = schedule.split(loops[operand.across], [None, tile])
        along = loops[operand.along]
        panel: list[int | ExprRV] = [operand.across, tile]
        if self.group > 1:
            panel += [operand.along, self.group]
            groups, along = schedule.split(along, [None, self.group])
            schedule.reorder(panels, groups, lane, along)
            schedule.vectorize(along)
        elif operand.read.strides[self.product.step] == 1:
            outer, along = self._periodic(along, periods)
            if is_across:
                unpack_across(draft, [panels, *outer], along, lane)
            else:
                # Rows are read along the sum and written across it: transposed in registers.
                schedule.reorder(panels, *outer, lane, along)
                schedule.unroll(lane)
                schedule.vectorize(along)
        else:
            schedule.reorder(panels, along, lane)
            schedule.vectorize(lane)
        schedule.annotate(copy, KEY, [0, *panel])
        element_bits = self._element_bits(operand)
        if element_bits is not None:
            schedule.annotate(copy, WIDE_KEY, [0, element_bits])
        draft.scheduled.add(draft.block_name(copy))

    def _periodic(self, loop: LoopRV, periods: tuple[int, ...]) -> tuple[Sequence[LoopRV], LoopRV]:
        """Split a loop by the periods; return the outer loops and the innermost one."""
        if not periods:
            return [], loop
        sizes = [a // b for a, b in pairwise(periods)]
        *outer, last = self.draft.schedule.split(loop, [None, *sizes, periods[-1]])
        return outer, last

    def _element_bits(self, operand: Operand) -> int | ExprRV | None:
        """Return the bits of an element in a panel, if panels may be wider than the operand.

        Elements are then converted once, not in each product. Few rows use each panel of the right
        operand only a few times, so it may be faster to read fewer bytes.
        """
        dtype = self.dtypes[operand.read.buffer]
        if self.group == PAIR and bits(dtype) == 8:
            return 16  # pairs are products of 16-bit integers
        if self.group > 1 or not is_narrow_float(dtype) or self._sums_halves():
            return None
        has_few_rows = self.facts.axes[self.product.row].extent < MIN_ROWS
        if operand is self.product.right and has_few_rows:
            return self.draft.choose((WIDE_BITS, bits(dtype)))[0]
        return WIDE_BITS

    def _sums_halves(self) -> bool:
        """Return whether the CPU multiplies and adds the elements in their own type, float16."""
        buffers = [self.facts.write.buffer, *(read.buffer for read in self.facts.reads)]
        are_halves = all(self.dtypes[buffer] == "float16" for buffer in buffers)
        return are_halves and self.draft.cpu.has_half_arithmetic
