"""Decisions about vectorized loops that tables of nests lack, found in the trace of a sketch.

Rows of a chain are computed in pieces: `split(j, [None, v])` and `vectorize` of the inner loop, or
summed in lanes with several steps at once: `reduce_in_lanes=[lanes, v]`. Nests do not hold these
decisions, because the static filter would take a piece for a register tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.trace.instruction import Argument, Ref
from compiler.schedule.trace.trace import Trace
from tuner.space.tables.knob import Knob


@dataclass(frozen=True, slots=True)
class LaneSteps:
    """Columns of the table of a sketch, for one block.

    Attributes:
        is_vectorized: Whether a loop is vectorized, of which the nest may have no level.
        piece: With the elements of a row that are computed in one step; None if no decision cuts
            the row.
        unrolled: With the vectors that are added in one step of a sum in lanes; None if it is one.
    """

    is_vectorized: bool = False
    piece: int | None = None
    unrolled: int | None = None


NO_STEPS = LaneSteps()


def lane_steps(trace: Trace, knobs: Sequence[Knob]) -> dict[str, LaneSteps]:
    """Return the columns of each block for which a trace decides some, by name."""
    columns = _columns(trace, knobs)
    blocks: dict[str, str] = {}  # by handle of the block
    around: dict[str, str] = {}  # the block, by handle of the loop
    pieces: dict[str, int] = {}  # the column, by handle of the inner loop
    steps: dict[str, LaneSteps] = {}
    for instruction in trace.instructions:
        arguments, outputs = dict(instruction.arguments), instruction.outputs
        loop = arguments.get("loop", arguments.get("block_or_loop"))
        block = around.get(loop.name, "") if isinstance(loop, Ref) else ""
        match instruction.name:
            case "get_sblock":
                blocks[outputs[0]] = str(arguments["name"])
            case "get_loops":
                around |= dict.fromkeys(outputs, _of(arguments["block"], blocks))
            case "fuse":
                around[outputs[0]] = around.get(next(iter(instruction.refs())), "")
            case "split":
                around |= dict.fromkeys(outputs, block)
                column = _column(arguments["factors"], columns)
                if column is not None:
                    pieces[outputs[-1]] = column
            case "vectorize" if isinstance(loop, Ref):
                steps[block] = replace(
                    steps.get(block, NO_STEPS), is_vectorized=True, piece=pieces.get(loop.name)
                )
            case "annotate" if arguments["ann_key"] == KEY:
                column = _column(arguments["ann_val"], columns)
                if column is not None:
                    steps[block] = replace(steps.get(block, NO_STEPS), unrolled=column)
            case _:
                pass
    return steps


def _columns(trace: Trace, knobs: Sequence[Knob]) -> dict[str, int]:
    """Return the column of each decided number, by its variable; of a cut, that of the length."""
    columns: dict[str, int] = {}
    deciding = [each for each in trace.instructions if each.spec.decides]
    first = 0
    for instruction, knob in zip(deciding, knobs, strict=True):
        first += knob.options.shape[1]
        if len(instruction.outputs) == 1:
            columns[instruction.outputs[0]] = first - 1
    return columns


def _column(numbers: Argument, columns: Mapping[str, int]) -> int | None:
    """Return the column of the last of several numbers."""
    if not isinstance(numbers, tuple) or len(numbers) != 2 or not isinstance(numbers[1], Ref):
        return None
    return columns.get(numbers[1].name)


def _of(handle: Argument, names: Mapping[str, str]) -> str:
    return names.get(handle.name, "") if isinstance(handle, Ref) else ""
