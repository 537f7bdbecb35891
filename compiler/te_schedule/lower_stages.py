"""Apply the stages of a `TensorSchedule` to a program, as primitives of a `Schedule`.

1. Copies and partial reductions are inserted, in the order in which they were asked for.
2. Inlined stages vanish, and memories are chosen.
3. Each stage, those that read before those that are read, goes to its location. Then its loops are
   split, fused and reordered, and run on threads: what is computed under a loop, and whether each
   iteration has it for itself, depends on the threads around it.
4. Loops become vectors, are unrolled or get hints; last, intrinsics take their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from compiler.ir.core.nodes import BlockRealize, Buffer, For, IntImm, Var
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.te.create_prim_func import TensorProgram
from compiler.te.tensor import Definition, Placeholder, Scan, Tensor
from compiler.te_schedule.inserted import AnyAxis, AnyOperation, AnyTensor, axes_of, axis_name
from compiler.te_schedule.insertion import CacheRead, CacheWrite, Insertion, RFactor
from compiler.te_schedule.nest import (
    Nest,
    merged,
    nest_in_order,
    nest_of,
    nest_under,
    nests_of,
    step_loop,
)
from compiler.te_schedule.stage import Stage
from compiler.te_schedule.tensorize_nest import tensorize_nest
from compiler.te_schedule.transformations import Mark, Transformation


def lower_stages(
    program: TensorProgram,
    stages: Mapping[AnyOperation, Stage],
    order: Sequence[Stage],
    insertions: Sequence[Insertion],
) -> Schedule:
    """Return the schedule of a program with all that the stages ask for.

    Args:
        program: The program, and what its blocks compute.
        stages: The stages by their operations, also those that they had before an insertion.
        order: The stages, each after those that it reads.
        insertions: The stages that the program does not have yet.

    Raises:
        StageError: If a stage refers to a loop that does not exist.
        ScheduleError: If a step is not legal for the program.
    """
    lowering = _StageLowering(program, stages, order)
    with lowering.sch.verified_once():
        lowering.insert(insertions)
        lowering.inline()
        lowering.place()
        lowering.mark()
    return lowering.sch


class _StageLowering:
    """The nests of the stages in the program so far."""

    def __init__(
        self,
        program: TensorProgram,
        stages: Mapping[AnyOperation, Stage],
        order: Sequence[Stage],
    ) -> None:
        self.sch = Schedule(program.func)
        self._buffers = program.buffers
        self._stages = stages
        self._order = order
        self._nests: dict[Stage, list[Nest]] = {}
        for op, stage in stages.items():
            names = program.block_names.get(op, ()) if isinstance(op, Definition) else ()
            blocks = [self.sch.get_block(name) for name in names]
            self._nests.setdefault(stage, nests_of(self.sch, blocks, axes_of(op)))
            if isinstance(op, Scan):
                step = self.sch.get_block(program.block_names[op.steps[0]][-1])
                self._nests[stage] = [step_loop(self.sch, step, op.scan_axis)]

    # Insertions

    def insert(self, insertions: Sequence[Insertion]) -> None:
        """Insert copies and partial results."""
        for insertion in insertions:
            match insertion:
                case CacheRead():
                    with _step(insertion.stage, "cache_read"):
                        self._cache_read(insertion)
                case CacheWrite():
                    with _step(insertion.copying, "cache_write"):
                        self._cache_write(insertion)
                case RFactor():
                    self._rfactor(insertion)

    def _cache_read(self, insertion: CacheRead) -> None:
        buffer = self._buffer(insertion.tensor)
        readers = [
            block
            for reader in insertion.readers
            for block in self._blocks(reader)
            if any(region.buffer == buffer for region in self._realize(block).block.reads)
        ]
        reads = self._realize(readers[0]).block.reads
        index = next(n for n, region in enumerate(reads) if region.buffer == buffer)
        copy = self.sch.cache_read(readers[0], index, insertion.scope, readers)
        self._nests[insertion.stage] = [nest_of(self.sch, copy, insertion.op.axis)]

    def _cache_write(self, insertion: CacheWrite) -> None:
        blocks = self._blocks(insertion.copying)
        copies = [
            self.sch.cache_write(block, index, insertion.scope)
            for block in blocks
            for index in range(len(self._realize(block).block.writes))
        ]
        self._nests[insertion.stage] = nests_of(self.sch, blocks, axes_of(insertion.op))
        copied = [nest_of(self.sch, copy, insertion.copy.axis) for copy in copies]
        self._nests[insertion.copying] = merged(self.sch, copied)

    def _rfactor(self, insertion: RFactor) -> None:
        stage, (nest,) = insertion.reducing, self._nests[insertion.reducing]
        self._transform(stage, nest, insertion.transformations)
        with _step(stage, f"rfactor({axis_name(insertion.axis)})"):
            partial = self.sch.rfactor(nest.loop(insertion.axis), insertion.factor_axis)
        # The partial results have the loops that the reduction had.
        dimensions = [
            insertion.factored if leaf is insertion.axis else leaf for leaf in insertion.leaves
        ]
        new = nest_in_order(self.sch, partial, dimensions)
        with _step(insertion.stage, "rfactor"):
            new.reorder(self.sch, axes_of(insertion.op))
        self._nests[insertion.stage] = [new]
        (reduced,) = insertion.combination.reduce_axis
        iterators = [reduced, *insertion.combination.axis]
        self._nests[stage] = nests_of(self.sch, nest.blocks, iterators)

    # Inlined stages, and memories

    def inline(self) -> None:
        """Inline stages, and choose the memories of the others."""
        for stage in self._order:
            if isinstance(stage.op, Placeholder):
                if stage.location != "root" or stage.scope:
                    raise stage.error("compute_inline", "an input is not computed", "fixed_buffer")
            elif stage.location == "inline":
                with _step(stage, "compute_inline"):
                    for block in self._blocks(stage):
                        self.sch.compute_inline(block)
            elif stage.scope:
                with _step(stage, f'set_scope("{stage.scope}")'):
                    for block in self._blocks(stage):
                        for index in range(len(self._realize(block).block.writes)):
                            self.sch.set_scope(block, index, stage.scope)

    # Loops

    def place(self) -> None:
        """Compute each stage at its location, and transform its loops; the last stages first."""
        for stage in reversed(self._order):
            if stage.location == "inline":
                continue
            if isinstance(stage.location, tuple):
                target, axis = stage.location
                with _step(stage, f"compute_at(s[{target.name}], {axis_name(axis)})"):
                    self._move(stage, target, axis)
            for nest in self._nests[stage]:
                self._transform(stage, nest, stage.transformations)
                for mark in stage.marks:
                    self._mark_first(stage, nest, mark)

    def _move(self, stage: Stage, target: Stage, axis: AnyAxis) -> None:
        step = f"compute_at(s[{target.name}], {axis_name(axis)})"
        if self._order.index(target) < self._order.index(stage):
            raise stage.error(step, f"{target.name} is computed before {stage.name}", "dependence")
        if target.location == "inline":
            raise stage.error(
                step, f"{target.name} is computed inline: it has no loops", "structure"
            )
        target.require_loop("compute_at", axis)
        moved: list[Nest] = []
        for nest in self._nests[stage]:
            for block in nest.blocks:
                loop = self._loop_for(stage, block, target, axis)
                if self._var(loop) in map(self._var, self.sch.get_loops(block)):
                    # The steps of a scan are inside its loop from the start.
                    moved.append(nest)
                    break
                self.sch.compute_at(block, loop, preserve_unit_loops=True)
                moved.append(nest_under(self.sch, block, nest.iterators))
        moved = merged(self.sch, moved)
        for nest in moved:
            nest.reorder(self.sch, axes_of(stage.op))
        self._nests[stage] = moved

    def _loop_for(self, stage: Stage, block: BlockRV, target: Stage, axis: AnyAxis) -> LoopRV:
        """Return the loop of another stage: of several, the one around what reads the block."""
        nests = self._nests[target]
        if len(nests) > 1:
            readers = {consumer.of for consumer in self.sch.get_consumers(block)}
            nests = [nest for nest in nests if any(b.of in readers for b in nest.blocks)]
        if len(nests) != 1:
            reason = f"the tensors of {target.name} are computed in several nests"
            raise stage.error("compute_at", reason, "structure")
        return nests[0].loop(axis)

    def _transform(
        self, stage: Stage, nest: Nest, transformations: Sequence[Transformation]
    ) -> None:
        for transformation in transformations:
            with _step(stage, str(transformation)):
                nest.transform(self.sch, transformation)

    def _mark_first(self, stage: Stage, nest: Nest, mark: Mark) -> None:
        """Mark a loop before other stages are computed under it."""
        loop = self._marked(stage, nest, mark)
        if mark.kind == "parallel":
            with _step(stage, f"parallel({axis_name(mark.axis)})"):
                self.sch.parallel(loop)
        elif mark.kind == "bind":
            self._bind(stage, mark, loop)

    def _bind(self, stage: Stage, mark: Mark, loop: LoopRV) -> None:
        thread = mark.value
        extents = self._for(loop).extent, thread.extent
        match extents:
            case IntImm(iterations), IntImm(threads) if iterations != threads:
                reason = f"{axis_name(mark.axis)} has {iterations} iterations, and {thread.name}"
                raise stage.error("bind", f"{reason} has {threads} threads")
        with _step(stage, f"bind({axis_name(mark.axis)})"):
            self.sch.bind(loop, thread.thread_tag)

    def mark(self) -> None:
        """Set how loops run, align memories, and insert intrinsics."""
        for stage in self._order:
            for nest in self._nests[stage] if stage.location != "inline" else ():
                self._mark_nest(stage, nest)
        for stage in self._order:
            for nest in self._nests[stage] if stage.location != "inline" else ():
                for mark in stage.marks:
                    if mark.kind == "tensorize":
                        self._marked(stage, nest, mark)
                        with _step(stage, f"tensorize({axis_name(mark.axis)})"):
                            tensorize_nest(self.sch, stage, nest, mark.axis, mark.value)

    def _mark_nest(self, stage: Stage, nest: Nest) -> None:
        for mark in stage.marks:
            loop = self._marked(stage, nest, mark)
            with _step(stage, f"{mark.kind}({axis_name(mark.axis)})"):
                match mark.kind:
                    case "vectorize":
                        self.sch.vectorize(loop)
                    case "unroll":
                        self.sch.unroll(loop)
                    case "pragma":
                        self.sch.annotate(loop, *mark.value)
                    case "bind" | "parallel" | "tensorize":
                        pass
        for block in nest.blocks:
            for axis, factor, offset in stage.alignments:
                dimension = stage.dimension(axis)
                assert dimension is not None, "the stage knows its dimensions"
                with _step(stage, f"storage_align({axis_name(axis)})"):
                    self.sch.storage_align(block, 0, dimension, factor, offset)

    def _marked(self, stage: Stage, nest: Nest, mark: Mark) -> LoopRV:
        """Return the loop of a mark, which must still be one of the stage."""
        stage.require_loop(mark.kind, mark.axis)
        return nest.loop(mark.axis)

    # Parts of the program

    def _blocks(self, stage: Stage) -> list[BlockRV]:
        return [block for nest in self._nests[stage] for block in nest.blocks]

    def _realize(self, block: BlockRV) -> BlockRealize:
        realize = self.sch.get(block)
        assert isinstance(realize, BlockRealize), "the handle is that of a block"
        return realize

    def _for(self, handle: LoopRV) -> For:
        loop = self.sch.get(handle)
        assert isinstance(loop, For), "the handle is that of a loop"
        return loop

    def _var(self, handle: LoopRV) -> Var:
        return self._for(handle).var

    def _buffer(self, tensor: AnyTensor) -> Buffer:
        """Return the buffer of a tensor in the program so far."""
        if isinstance(tensor, Tensor):
            return self._buffers[tensor]
        blocks = self._blocks(self._stages[tensor.op])
        writes = [region.buffer for b in blocks for region in self._realize(b).block.writes]
        return writes[tensor.op.outputs.index(tensor)]


@contextmanager
def _step(stage: Stage, step: str) -> Iterator[None]:
    """Name the step of a stage in the error of a primitive."""
    try:
        yield
    except ScheduleError as error:
        full_step = f"s[{stage.name}].{step}: {error.primitive}"
        raise ScheduleError(full_step, error.reason, error.program, error.at, error.code) from error
