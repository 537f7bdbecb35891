"""Compute a chain of transforms strip by strip, so that what is between them stays in the cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compiler import te
from compiler.ir.core.nodes import BlockRealize, For, IntImm, Load, Var
from compiler.ir.core.visit import walk
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts, BlockPosition, TensorAccess, sites
from tuner.space.analysis.index_divisors import index_divisors
from tuner.space.rules.epilogue import is_epilogue
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import LINE_BYTES

MAX_ROW = 32
"""Elements of a row that one tile transposes, if vectors do not divide the row, such as 28. Chosen.
"""
MAX_TILE = 4
"""Outputs of Winograd's largest tile along a dimension: a multiple of it has whole tiles."""

Choices = Mapping[str, Sequence[int]]
"""The axes of blocks that select their formula."""


@dataclass(frozen=True)
class TransformChain:
    """Spatial blocks, each read by the next one alone, among them some that select formulas.

    Attributes:
        blocks: Their names in program order.
        base: The last block, or the one before if the last one is elementwise.
    """

    blocks: tuple[str, ...]
    base: str


def find_chains(draft: SketchBuilder, choices: Choices) -> list[TransformChain]:
    """Return the chains of transforms, with the copies before and after them."""
    all_facts = draft.block_facts()
    chains: list[list[str]] = []
    for name, facts in all_facts.items():
        if facts.is_reduction or name in draft.scheduled:
            continue
        ends = [chain for chain in chains if draft.consumers(chain[-1]) == [name]]
        if len(ends) == 1 and _continues(all_facts, choices, ends[0], name):
            ends[0].append(name)
        elif name in choices or _is_copy(facts):
            chains.append([name])
    suited = [chain for chain in chains if len(chain) > 1 and set(chain) & set(choices)]
    return [TransformChain(tuple(chain), _base(choices, chain)) for chain in suited]


def _is_copy(facts: BlockFacts) -> bool:
    return facts.flops_per_point == 0 and len(facts.reads) == 1


def _continues(
    all_facts: Mapping[str, BlockFacts], choices: Choices, chain: Sequence[str], name: str
) -> bool:
    """Return whether a chain goes on with the consumer of its last block."""
    last = chain[-1]
    if name in choices:
        return last in choices or (len(chain) == 1 and _is_copy(all_facts[last]))
    if last in choices:
        return True
    is_end = len(chain) > 1 and chain[-2] in choices
    return is_end and is_epilogue(all_facts[last], all_facts[name])


def _base(choices: Choices, chain: Sequence[str]) -> str:
    has_epilogue = not set(chain[-2:]) & set(choices)
    return chain[-2] if has_epilogue else chain[-1]


@dataclass(frozen=True)
class _Strip:
    """The shape of a strip: its elements along some axes, and one along each other axis.

    Attributes:
        vector: The axis of the vectors.
        has_rows: Whether strips are rows of an image, and not of weights.
    """

    sizes: Mapping[int, int]
    vector: int
    has_rows: bool


@dataclass
class StripScheduler:
    """Schedules the blocks of a chain under loops over strips.

        for y, x, c: D[y, x, c] = ...              for y0, c0 in ...:  # parallel
        for i, y, x, c: R[i, y, x, c] = ...   ->       for y, x, c: D[y, x, c] = ...
        for i, j, p, c: T[i, j, p, c] = ...            for x, i, c: R[i, x, c] = ...
                                                       for i, x, j, c: T[i, j, p, c] = ...

    A strip is as wide as a cache line along the vectors, and one row of tiles high. It has all
    formulas, as these share what they read.
    """

    draft: SketchBuilder
    chain: TransformChain
    choices: Choices
    around: list[LoopRV] = field(default_factory=list)

    def run(self) -> None:
        """Place all blocks under the loops over strips, and expand each.

        Raises:
            ScheduleError: If a block can't be placed there.
        """
        draft, (*others, last) = self.draft, self.chain.blocks
        for name in others:
            if name not in self.choices and name != self.chain.base:
                _sort_dimensions(draft, name)
        facts = draft.block_facts()
        inner = self._cut(facts)
        for name in reversed(others):
            handle = draft.schedule.get_block(name)
            draft.schedule.compute_at(handle, self.around[-1], preserve_unit_loops=True)
        for name in self.chain.blocks:
            loops = inner if name == last else self._inside(facts[name])
            if name in self.choices:
                self._expand_choices(facts[name], loops)
            else:
                self._expand_copy(facts[name], loops, self._source(facts, name))
            draft.scheduled.add(name)

    def _lanes(self, facts: BlockFacts) -> int:
        return max(1, self.draft.cpu.vector_bits // (8 * facts.write.item_bytes))

    def _source(self, facts: Mapping[str, BlockFacts], name: str) -> TensorAccess:
        """Return the first read of a block from the block before it, or the largest."""
        number = self.chain.blocks.index(name)
        before = facts[self.chain.blocks[number - 1]].write.buffer if number else ""
        reads = facts[name].reads
        return next((read for read in reads if read.buffer == before), reads[0])

    def _cut(self, facts: Mapping[str, BlockFacts]) -> dict[int, LoopRV]:
        """Cut the last block into strips; return the loops of a strip by the axes."""
        schedule, base = self.draft.schedule, facts[self.chain.base]
        strip = self._strip(facts)
        outer: dict[int, LoopRV] = {}
        inner: dict[int, LoopRV] = {}
        for axis, loop in enumerate(self.draft.loops(self.chain.blocks[-1])):
            size = strip.sizes.get(axis, 1)
            if size == base.axes[axis].extent:
                inner[axis] = loop
            elif size == 1:
                outer[axis] = loop
            else:
                outer[axis], inner[axis] = schedule.split(loop, [None, size])
        # The rows of an image are read one after another, those of weights beside each other.
        order = sorted(outer, key=lambda axis: (axis == strip.vector) == strip.has_rows)
        if not order:
            unit = schedule.add_unit_loop(next(iter(inner.values())))
            self.around = [unit]
        else:
            self.around = [outer[axis] for axis in order]
        schedule.reorder(*self.around, *inner.values())
        return inner

    def _strip(self, facts: Mapping[str, BlockFacts]) -> _Strip:
        base = facts[self.chain.base]
        site = next(s for s in sites(self.draft.schedule.func) if s.block.name == base.name)
        iterators = {i.var.name: i.var for i in site.block.iter_vars}
        is_choice = base.name in self.choices
        vector = _contiguous(base, base.write if is_choice else self._source(facts, base.name))
        whole = {*self.choices.get(base.name, ()), *self._chosen_before(site, facts)}
        periods = {
            axis: min(index_divisors(site.block, iterators[a.name]), default=1)
            for axis, a in enumerate(base.axes)
            if axis not in {vector, *whole}
        }
        rows = [axis for axis, period in periods.items() if period > 1]
        # Pixels of a row that has its own axis are written beside each other.
        row = rows[1:][-1:]
        sizes = {axis: base.axes[axis].extent for axis in {*whole, *row}}
        sizes |= {axis: periods[axis] for axis in rows if axis not in row}
        lanes = self._lanes(base)
        line = max(lanes, LINE_BYTES // base.write.item_bytes)
        sizes[vector] = _dividing(base.axes[vector].extent, line, lanes)
        others = [axis for axis in periods if axis not in sizes]
        if others and not rows:
            sizes[others[-1]] = _dividing(base.axes[others[-1]].extent, line, lanes)
        return _Strip(sizes, vector, bool(rows))

    def _chosen_before(self, site: BlockPosition, facts: Mapping[str, BlockFacts]) -> Iterator[int]:
        """Yield the axes of the base by which the block before it selects formulas."""
        names = [axis.name for axis in facts[self.chain.base].axes]
        chosen = {
            (facts[name].write.buffer, axis)
            for name in self.chain.blocks
            for axis in self.choices.get(name, ())
        }
        for node in walk(site.block.body):
            if isinstance(node, Load):
                for dim, index in enumerate(node.indices):
                    if (node.buffer.name, dim) in chosen and isinstance(index, Var):
                        yield names.index(index.name)

    def _inside(self, facts: BlockFacts) -> dict[int, LoopRV]:
        """Return the loops of a block in a strip by its axes, without its padding.

        The constant of a padding is filled in before.
        """
        schedule, loops = self.draft.schedule, self._loops(facts)
        block, first = schedule.get_block(facts.name), self.draft.loops(facts.name)
        outermost = first[len(self.around)]
        if not facts.is_conditional or not schedule.can_decompose_padding(block, outermost):
            return loops
        constant = schedule.decompose_padding(block, outermost)
        schedule.vectorize(self.draft.loops(constant)[-1])
        self.draft.scheduled.add(self.draft.block_name(constant))
        return self._loops(facts)

    def _loops(self, facts: BlockFacts) -> dict[int, LoopRV]:
        """Return the loops of a block in a strip by its axes."""
        schedule = self.draft.schedule
        realize = schedule.get(schedule.get_block(facts.name))
        assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
        names = [iterator.var.name for iterator in realize.block.iter_vars]
        loops = self.draft.loops(facts.name)[len(self.around) :]
        return {i: loops[names.index(axis.name)] for i, axis in enumerate(facts.axes)}

    def _expand_choices(self, facts: BlockFacts, loops: Mapping[int, LoopRV]) -> None:
        """Unroll the formulas of a block around a vector."""
        schedule, choices = self.draft.schedule, self.choices[facts.name]
        vector = _contiguous(facts, facts.write)
        others = [loop for axis, loop in loops.items() if axis not in {vector, *choices}]
        *pieces, lanes = self._pieces(loops[vector], self._lanes(facts))
        unrolled = [loops[axis] for axis in choices]
        schedule.reorder(*others, *pieces, *unrolled, lanes)
        for loop in unrolled:
            schedule.unroll(loop)
        schedule.vectorize(lanes)

    def _expand_copy(
        self, facts: BlockFacts, loops: dict[int, LoopRV], source: TensorAccess
    ) -> None:
        """Copy in vectors, or in tiles that are transposed in registers."""
        schedule, lanes = self.draft.schedule, self._lanes(facts)
        read, written = _contiguous(facts, source), _contiguous(facts, facts.write)
        vector = loops.pop(written)
        if read == written:
            schedule.reorder(*loops.values(), vector)
            schedule.vectorize(vector)
            return
        row = loops.pop(read)
        while not facts.is_conditional and read > 0 and facts.runs_on(read - 1, read):
            read -= 1
            row = schedule.fuse(loops.pop(read), row)
        *columns, column = self._pieces(vector, self._tile_size(vector, lanes))
        *rows, row = self._pieces(row, self._tile_size(row, lanes))
        schedule.reorder(*loops.values(), *columns, *rows, column, row)
        schedule.unroll(column)
        schedule.vectorize(row)

    def _tile_size(self, loop: LoopRV, lanes: int) -> int:
        """Return the size of a transposed tile along a loop.

        It is a vector, or a row without a rest: short rows, or whole tiles of 2 or 4 outputs. If
        there is none, guards cut off the rest, whose elements are stored one by one.
        """
        extent = _extent(self.draft, loop)
        if extent % lanes == 0:
            return lanes
        if extent <= MAX_ROW:
            return extent
        sizes = (size for size in divisors(extent) if lanes <= 2 * size <= 2 * MAX_ROW)
        return max((size for size in sizes if size % MAX_TILE == 0), default=lanes)

    def _pieces(self, loop: LoopRV, size: int) -> list[LoopRV]:
        """Cut a loop that is longer than a size."""
        extent = _extent(self.draft, loop)
        if extent <= size:
            return [loop]
        return list(self.draft.schedule.split(loop, [None, size]))


def _extent(draft: SketchBuilder, loop: LoopRV) -> int:
    node = draft.schedule.get(loop)
    assert isinstance(node, For), "a loop's handle stands for a loop"
    assert isinstance(node.extent, IntImm), "transforms have constant extents"
    return node.extent.value


def _dividing(extent: int, *sizes: int) -> int:
    """Return the first size that divides an extent, or the extent."""
    return next((size for size in sizes if extent % size == 0), extent)


def _contiguous(facts: BlockFacts, access: TensorAccess) -> int:
    """Return the innermost axis along which an access is contiguous, or the last axis."""
    axes = enumerate(facts.axes)
    unit_strides = [i for i, axis in axes if axis.extent > 1 and access.strides[i] == 1]
    return max(unit_strides, default=len(facts.axes) - 1)


def _sort_dimensions(draft: SketchBuilder, name: str) -> None:
    """Give the result of a copy the order of dimensions in which the copy reads, but the last."""
    facts = draft.block_facts()[name]
    strides = facts.reads[0].strides
    *dims, last = range(len(facts.axes))
    order = [*sorted(dims, key=lambda dim: -strides[dim]), last]
    if order == [*dims, last] or len(order) != len(facts.write.shape):
        return

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        return tuple(i[dim] for dim in order)

    block = draft.schedule.get_block(name)
    draft.schedule.transform_layout(block, ("write", 0), layout)
    draft.schedule.transform_block_layout(block, layout)
