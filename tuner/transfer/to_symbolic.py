"""Carry a schedule of one shape over to the symbolic program, so that one kernel runs all shapes.

Tiles keep their sizes; only the outermost loop of a symbolic axis grows with it:

    of a product with 37 rows            of one with M rows
    i in 4 parts of 2 tiles of 5 rows    i in ceil(M / 10) parts of 2 tiles of 5 rows
"""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.analysis.specialize import specialize
from compiler.ir.core.nodes import For, IntImm, SymbolValues
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import Handle, LoopRV
from compiler.schedule.trace.instruction import Instruction, Ref
from compiler.schedule.trace.replay import replay
from compiler.schedule.trace.trace import Trace

Handles = dict[str, Handle | None]


def symbolic_trace(
    trace: Trace, func: PrimFunc, values: SymbolValues, tile: int | None = None
) -> Trace:
    """Return the trace of a symbolic program that does what a trace does at one size.

    Args:
        trace: A trace of the program at these sizes.
        func: The symbolic program.
        values: The sizes.
        tile: The extent of the innermost tiles of symbolic axes, unless that is 1: tiles need not
            divide a symbolic axis. None for the same as at that size.

    Raises:
        ScheduleError: If the symbolic program does not admit it.
    """
    sized, symbolic = Schedule(specialize(func, values)), Schedule(func)
    of_sized: Handles = {}
    of_symbolic: Handles = {}
    with sized.verified_once(), symbolic.verified_once():
        for instruction in trace.instructions:
            of_sized = replay([instruction], sized, handles=of_sized)
            grown = _growing(instruction, sized, of_sized, symbolic, of_symbolic, tile=tile)
            of_symbolic = replay([grown], symbolic, handles=of_symbolic)
    return symbolic.trace


def _growing(
    instruction: Instruction,
    sized: Schedule,
    of_sized: Handles,
    symbolic: Schedule,
    handles: Handles,
    *,
    tile: int | None,
) -> Instruction:
    """Return a split of a symbolic loop with an outermost factor that follows from the others.

    Other instructions stay as they are.
    """
    arguments = dict(instruction.arguments)
    loop = arguments.get("loop")
    if instruction.name != "split" or not isinstance(loop, Ref):
        return instruction
    if isinstance(_loop(symbolic, handles[loop.name]).extent, IntImm):
        return instruction
    extents = [_loop(sized, of_sized[name]).extent for name in instruction.outputs[1:]]
    inner = tuple(extent.value for extent in extents if isinstance(extent, IntImm))
    if tile is not None and inner[-1:] != (1,):
        inner = (*inner[:-1], tile)
    arguments["factors"] = (None, *inner)
    return replace(instruction, arguments=tuple(arguments.items()))


def _loop(schedule: Schedule, handle: Handle | None) -> For:
    assert isinstance(handle, LoopRV), "the handle is one of a loop"
    loop = schedule.get(handle)
    assert isinstance(loop, For)
    return loop
