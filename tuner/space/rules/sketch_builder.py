"""Drafts: unfinished sketches, which schedule rules extend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from compiler.backends.cpu.codegen.operations.dot_instructions import DotGroup
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    BlockRealize,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from compiler.target.cpu import CpuTarget
from compiler.target.cuda import CudaTarget
from compiler.target.target import Target
from tuner.space.analysis.block_facts import BlockFacts, block_facts, sites
from tuner.space.tables.canonical_decisions import find_zones
from tuner.space.tables.kernel_blocks import kernel_blocks
from tuner.space.tables.knob import ChoiceKnob, CutKnob, Knob, ScaledKnob, TileKnob
from tuner.space.tables.labels import knob_labels
from tuner.space.tables.loop_slots import sketch_program
from tuner.space.tables.nest import NUM_LEVELS, TiledNest
from tuner.space.tables.prepacked import without_packing
from tuner.space.tables.shared_copies import shared_copies
from tuner.space.tables.sketch import Sketch
from tuner.space.tables.tensor_tile import TensorTile


@dataclass(frozen=True)
class Tiling:
    """The loops of a tiled block, for later rules.

    Attributes:
        block: The name of the block.
        tile_loop: The index of its last loop of the outermost level. A producer computed there
            computes the inputs of one tile.
        reduction_loop: The index of its outermost reduction loop.
    """

    block: str
    tile_loop: int
    reduction_loop: int


@dataclass
class SketchBuilder:
    """A schedule with open decisions, and the tables of these decisions.

    Rules refer to blocks by name, not by handle, because a fork has other handles.
    """

    func: PrimFunc
    target: Target
    schedule: Schedule
    name: tuple[str, ...] = ()
    knobs: list[Knob] = field(default_factory=list)
    nests: list[TiledNest] = field(default_factory=list)
    tags: frozenset[str] = frozenset()
    tilings: list[Tiling] = field(default_factory=list)
    scheduled: set[str] = field(default_factory=set)
    rules: tuple[str, ...] = ()
    excluded: tuple[tuple[int, int], ...] = ()

    @classmethod
    def begin(cls, func: PrimFunc, target: Target) -> SketchBuilder:
        """Return the draft before any rule."""
        return cls(func, target, Schedule(func))

    def fork(self, name: str, *tags: str) -> SketchBuilder:
        """Return an independent copy, under a longer name."""
        return replace(
            self,
            schedule=self.schedule.copy(),
            name=(*self.name, name),
            knobs=list(self.knobs),
            nests=list(self.nests),
            tags=self.tags | set(tags),
            tilings=list(self.tilings),
            scheduled=set(self.scheduled),
        )

    @property
    def cpu(self) -> CpuTarget:
        """Return the target of a rule for CPUs."""
        return CpuTarget.of(self.target)

    @property
    def gpu(self) -> CudaTarget:
        """Return the target of a rule for GPUs."""
        return CudaTarget.of(self.target)

    @property
    def extent(self) -> tuple[int, int]:
        """Return the numbers of instructions and names; applied rules increase one of them."""
        return len(self.schedule.trace.instructions), len(self.name)

    def block_facts(self) -> dict[str, BlockFacts]:
        """Return the facts of the blocks of the current program, by name, if they are known."""
        all_facts = (block_facts(site) for site in sites(self.schedule.func))
        return {facts.name: facts for facts in all_facts if facts is not None}

    def dtypes(self) -> dict[str, DType]:
        """Return the types of the elements of the buffers that blocks access, by name."""
        blocks = [site.block for site in sites(self.schedule.func)]
        regions = [region for block in blocks for region in (*block.reads, *block.writes)]
        return {region.buffer.name: region.buffer.dtype for region in regions}

    def consumers(self, block: str) -> list[str]:
        """Return the names of the blocks that read a block's output, in program order."""
        program = [site.block for site in sites(self.schedule.func)]
        written = {w.buffer for b in program if b.name == block for w in b.writes}
        return [b.name for b in program if any(r.buffer in written for r in b.reads)]

    def copy_input(self, block: BlockRV, buffer: str) -> BlockRV:
        """Copy an input of a block for this block alone; return the block that copies."""
        name = self.block_name(block)
        program = [site.block for site in sites(self.schedule.func)]
        readers = [b.name for b in program if any(r.buffer.name == buffer for r in b.reads)]
        consumers = [block] if any(reader not in (name, "root") for reader in readers) else None
        return self.schedule.cache_read(block, buffer, "global", consumers)

    def is_intermediate(self, block: str) -> bool:
        """Return whether a block's output is not a parameter."""
        program = (site.block for site in sites(self.schedule.func))
        written = {w.buffer for b in program if b.name == block for w in b.writes}
        return not written & set(self.func.buffers)

    def tile(
        self, loop: LoopRV, extent: int, parts: int, max_innermost: int
    ) -> tuple[list[ExprRV], int]:
        """Sample a perfect tile of a loop; return its factors and the first one's column.

        The decision in the trace is a placeholder: everything in the outermost part.
        """
        knob = TileKnob(extent, parts, max_innermost)
        column = sum(k.options.shape[1] for k in self.knobs)
        self.knobs.append(knob)
        placeholder = [extent, *[1] * (parts - 1)]
        factors = self.schedule.sample_perfect_tile(
            loop, parts, max_innermost_factor=max_innermost, decision=placeholder
        )
        return [factor for factor in factors if factor is not None], column

    def choose(self, values: Sequence[int]) -> tuple[ExprRV, int]:
        """Sample one of the values, with the first as placeholder; return it and its column."""
        knob = ChoiceKnob(tuple(values))
        column = sum(k.options.shape[1] for k in self.knobs)
        self.knobs.append(knob)
        even = [1 / len(values)] * len(values)
        return self.schedule.sample_categorical(list(values), even, decision=0), column

    def cut(self, extent: int, sizes: Sequence[int]) -> tuple[ExprRV, int]:
        """Sample the length of the pieces of an extent; return it and the knob's first column.

        The columns hold the number of pieces and their length.
        """
        size, column = self.choose(sizes)
        self.knobs[-1] = CutKnob(tuple(sizes), extent)
        return size, column

    def scaled(self, values: Sequence[int], unit: int) -> tuple[ExprRV, int]:
        """Sample a number of groups of `unit` elements; return it and the knob's first column.

        The columns hold the number of elements and the number of groups.
        """
        groups, column = self.choose(values)
        self.knobs[-1] = ScaledKnob(tuple(values), unit)
        return groups, column

    def exclude(self, column: int, number: int) -> None:
        """Exclude decisions that another sketch has, too, or that the sketch is not made for.

        Args:
            column: The column of the sketch's table, as `tile`, `choose` and `cut` return it.
            number: The excluded value.
        """
        self.excluded = (*self.excluded, (column, number))

    def loops(self, block: BlockRV | str) -> list[LoopRV]:
        """Return the loops around a block, the outermost first."""
        handle = self.schedule.get_block(block) if isinstance(block, str) else block
        return list(self.schedule.get_loops(handle))

    def block_name(self, block: BlockRV) -> str:
        """Return the name of a block by its handle."""
        realize = self.schedule.get(block)
        assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
        return realize.block.name

    def written_buffer(self, block: BlockRV) -> str:
        """Return the name of the buffer that a block writes, by its handle."""
        realize = self.schedule.get(block)
        assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
        return realize.block.writes[0].buffer.name

    def note(
        self,
        facts: BlockFacts,
        levels: Mapping[int, Mapping[int, int]],
        rest: Mapping[int, int],
        vector_axis: int | None = None,
        *,
        lanes: tuple[tuple[int, int], ...] = (),
        packed: Sequence[int] = (),
        source_bytes: tuple[int, ...] = (),
        tensor_tile: TensorTile | None = None,
        dot: DotGroup | None = None,
    ) -> None:
        """Record the decisions of a block, for the filter and the cost model; see `TiledNest`.

        Args:
            levels: For each split axis, by its index, the column of the extent of each part, by
                level.
            rest: The level of the remainder of each axis, by its index. An axis in neither is at
                level 0 if it is spatial, else at level 4.
            vector_axis: The axis whose part at level 6 is vectorized.
            lanes: On a GPU, how the lanes of a warp lie along axes, if a rule decides it.
            packed: The accesses to panels; see `TiledNest`.
            source_bytes: The bytes of the arrays from which elements are gathered, by access.
            tensor_tile: What one instruction of tensor cores computes.
            dot: The steps of a sum that a CPU multiplies and adds at once.
        """
        columns = [levels.get(axis, {}) for axis in range(len(facts.axes))]
        default_levels = [4 if axis.is_reduction else 0 for axis in facts.axes]
        self.nests.append(
            TiledNest(
                facts,
                tuple(
                    tuple(axis_columns.get(level) for level in range(NUM_LEVELS))
                    for axis_columns in columns
                ),
                tuple(
                    rest.get(i, None if axis_columns else default_levels[i])
                    for i, axis_columns in enumerate(columns)
                ),
                vector_axis,
                frozenset(packed),
                lanes=lanes,
                source_bytes=source_bytes,
                tensor_tile=tensor_tile,
                dot=dot or DotGroup(),
            )
        )

    def parallelize(self, loops: Sequence[LoopRV]) -> int:
        """Fuse loops and run them in parallel, if the target has several cores.

        Returns:
            The number of loops that remain.
        """
        if self.target.num_cores == 1 or not loops:
            return len(loops)
        self.schedule.parallel(self.schedule.fuse(*loops) if len(loops) > 1 else loops[0])
        return 1

    def finish(self) -> Sketch:
        """Return the sketch."""
        nests = without_packing(self.nests, self.func, self.schedule.func, self.target)
        heaviest = sorted(nests, key=lambda n: -n.facts.points * (1 + n.facts.flops_per_point))
        program = sketch_program(self.func, self.schedule.trace, tuple(self.knobs))
        return Sketch(
            "/".join(self.name),
            self.schedule.trace,
            tuple(self.knobs),
            tuple(heaviest),
            self.tags,
            self.rules,
            find_zones(program),
            self.excluded,
            knob_labels(self.schedule.trace, self.func),
            shared_copies(program),
            kernel_blocks(program) if self.target.kind == CudaTarget.kind else (),
        )
