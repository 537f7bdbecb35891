"""The loops of a sketch's program, and the columns of its table that hold their extents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from compiler.ir.core.nodes import Block, BlockRealize, For, IntImm, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, Handle, LoopRV
from compiler.schedule.trace.instruction import Instruction, Ref, refs_in
from compiler.schedule.trace.replay import replay
from compiler.schedule.trace.trace import Trace
from tuner.space.tables.knob import Ints, Knob, TileKnob


@dataclass(frozen=True)
class LoopSlot:
    """A loop, and the column of the sketch's table with its extent.

    Attributes:
        column: The column with its extent; None if the extent is the remainder of a split.
        knob: The index of the tile knob of this part. None if the loop must not move, because
            another instruction uses its extent, too.
        extent: The extent of the split loop, if the column is None.
        others: The columns of the other parts, if the column is None.
    """

    column: int | None
    knob: int | None = None
    extent: int = 1
    others: tuple[int, ...] = ()

    def extents(self, values: Ints) -> Ints:
        """Return the extents of the loop in the rows of a table."""
        if self.column is not None:
            return values[:, self.column]
        inner = np.prod(values[:, list(self.others)], axis=1)
        remainder: Ints = -(-self.extent // inner)
        return remainder


@dataclass(frozen=True)
class SketchProgram:
    """The program of a sketch with its placeholder decisions.

    Attributes:
        func: The scheduled program.
        slots: The slots of its loops, by their variables; loops that no knob decides have none.
        always_one: The variables of loops of one iteration in the program before the schedule.
        copied: The buffers that blocks of `cache_read` copy, by the names of these blocks.
        notes: The decided numbers in the annotations of loops, by the variable of the loop and the
            key of the annotation.
    """

    func: PrimFunc
    slots: Mapping[Var, LoopSlot]
    always_one: frozenset[Var]
    copied: Mapping[str, str]
    notes: Mapping[tuple[Var, str], tuple[LoopSlot, ...]]


def sketch_program(func: PrimFunc, trace: Trace, knobs: tuple[Knob, ...]) -> SketchProgram:
    """Replay the trace of a sketch, and find the slots of its loops."""
    loops = {node.var: node for node in walk(func.body) if isinstance(node, For)}
    schedule = Schedule(func)
    handles: dict[str, Handle | None] = {}
    extents: dict[str, int] = {}
    copied: dict[str, str] = {}
    with schedule.verified_once(defers_threads=True):
        for instruction in trace.instructions:
            if instruction.name == "split":
                loop = _loop(schedule, handles[instruction.refs()[0]])
                if loop is not None and loop.var in loops and isinstance(loop.extent, IntImm):
                    extents[instruction.outputs[0]] = loop.extent.value
            source = _copied_buffer(schedule, instruction, handles)
            handles = replay((instruction,), schedule, handles=handles)
            if source is not None:
                copied[_block(schedule, handles[instruction.outputs[0]]).name] = source
    slots: dict[Var, LoopSlot] = {}
    for name, slot in _slots(trace, knobs, extents).items():
        loop = _loop(schedule, handles[name])
        if loop is not None:
            slots[loop.var] = slot
    notes: dict[tuple[Var, str], tuple[LoopSlot, ...]] = {}
    for (name, key), numbers in _noted_columns(trace, knobs).items():
        loop = _loop(schedule, handles[name]) if isinstance(handles[name], LoopRV) else None
        if loop is not None:
            notes[loop.var, key] = numbers
    always_one = frozenset(var for var, loop in loops.items() if loop.extent == IntImm(1))
    return SketchProgram(schedule.func, slots, always_one, copied, notes)


def _copied_buffer(
    schedule: Schedule, instruction: Instruction, handles: Mapping[str, Handle | None]
) -> str | None:
    """Return the buffer that an instruction copies; None if it copies no input."""
    if instruction.name != "cache_read":
        return None
    arguments = dict(instruction.arguments)
    block, index = arguments["block"], arguments["read_buffer_index"]
    assert isinstance(block, Ref), "blocks are given by handles"
    if isinstance(index, str):
        return index
    assert isinstance(index, int), "reads are given by number or name"
    return _block(schedule, handles[block.name]).reads[index].buffer.name


def _block(schedule: Schedule, handle: Handle | None) -> Block:
    assert isinstance(handle, BlockRV), "the handle of a block"
    realize = schedule.get(handle)
    assert isinstance(realize, BlockRealize), "a block's handle stands for a block"
    return realize.block


def _loop(schedule: Schedule, handle: Handle | None) -> For | None:
    """Return the loop of a handle; None if it became part of another loop."""
    assert isinstance(handle, LoopRV), "loops are split into loops"
    try:
        loop = schedule.get(handle)
    except ScheduleError:
        return None
    return loop if isinstance(loop, For) else None


def _slots(trace: Trace, knobs: tuple[Knob, ...], extents: dict[str, int]) -> dict[str, LoopSlot]:
    """Return the loops, by their names in the trace, whose extents are in the sketch's table.

    Args:
        extents: The extents of split loops of the program, by the first part of each.
    """
    columns = _decided_columns(trace, knobs)
    uses = Counter(name for i in trace.instructions for name in i.refs() if name in columns)
    slots: dict[str, LoopSlot] = {}
    for instruction in trace.instructions:
        if instruction.name != "split":
            continue
        factors = dict(instruction.arguments)["factors"]
        assert isinstance(factors, tuple), "a list of factors"
        names = [f.name for f in factors if isinstance(f, Ref) and f.name in columns]
        for factor, output in zip(factors, instruction.outputs, strict=True):
            if isinstance(factor, Ref) and factor.name in columns:
                column, number = columns[factor.name]
                is_free = uses[factor.name] == 1 and isinstance(knobs[number], TileKnob)
                slots[output] = LoopSlot(column, number if is_free else None)
            elif factor is None and len(names) == len(factors) - 1:
                extent = extents.get(instruction.outputs[0])
                if extent is not None:
                    others = tuple(columns[name][0] for name in names)
                    slots[output] = LoopSlot(None, None, extent, others)
    return slots


def _decided_columns(trace: Trace, knobs: tuple[Knob, ...]) -> dict[str, tuple[int, int]]:
    """Return the column of each decided number and the index of its knob, by its name."""
    columns: dict[str, tuple[int, int]] = {}
    first = 0
    decided = iter(enumerate(knobs))
    for instruction in trace.instructions:
        if instruction.spec.decides:
            number, knob = next(decided)
            width = knob.options.shape[1]
            # If a knob has more columns than outputs, its last columns hold the outputs.
            start = first + width - len(instruction.outputs)
            columns |= {name: (start + n, number) for n, name in enumerate(instruction.outputs)}
            first += width
    return columns


def _noted_columns(
    trace: Trace, knobs: tuple[Knob, ...]
) -> dict[tuple[str, str], tuple[LoopSlot, ...]]:
    """Return the decided numbers in annotations, by the annotated handle and the key."""
    columns = _decided_columns(trace, knobs)
    notes: dict[tuple[str, str], tuple[LoopSlot, ...]] = {}
    for instruction in trace.instructions:
        if instruction.name != "annotate":
            continue
        arguments = dict(instruction.arguments)
        handle, value = arguments["block_or_loop"], arguments["ann_val"]
        decided = tuple(LoopSlot(columns[name][0]) for name in refs_in(value) if name in columns)
        if isinstance(handle, Ref) and decided:
            notes[handle.name, str(arguments["ann_key"])] = decided
    return notes
