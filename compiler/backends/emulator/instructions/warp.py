"""Instructions in which the lanes of a warp exchange values.

The scheduler runs them when the lanes of the member mask have arrived together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.grid import WARP_SIZE, Grid
from compiler.backends.emulator.instructions.builder import Builder, last_type
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import ALL, Array, Lanes, ptx_type

_B32, _U32, _PRED = ptx_type("b32"), ptx_type("u32"), ptx_type("pred")
_POSITIONS = np.arange(WARP_SIZE)


def warp_table(grid: Grid, lanes: Lanes) -> tuple[Array, Array, Array]:
    """Return the active lanes as a table, one row a warp.

    Returns:
        The table, with -1 for inactive lanes; then the row and the column of each active lane.
    """
    active = grid.lanes[lanes]
    columns = grid.threads[lanes] % WARP_SIZE
    if lanes is ALL and grid.num_threads % WARP_SIZE == 0:
        return active.reshape(-1, WARP_SIZE), active // WARP_SIZE, columns
    numbers, rows = np.unique(grid.warps[lanes], return_inverse=True)
    table = np.full((len(numbers), WARP_SIZE), -1, np.int64)
    table[rows, columns] = active
    return table, rows, columns


def full_warps(machine: Machine, instruction: PtxInstruction, lanes: Lanes) -> Array:
    """Return the lanes as rows of 32; a warp that is not whole is a fault."""
    table, _, _ = warp_table(machine.grid, lanes)
    whole = (table >= 0).all(axis=1)
    if not whole.all():
        partial = table[~whole]
        machine.faults.report(
            FaultKind.DIVERGENT_WARP,
            instruction,
            partial[partial >= 0],
            "not all 32 lanes of the warp run this instruction together",
        )
    return table[whole]


def _shuffle(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`shfl.sync.mode.b32 d|p, a, b, c, mask`: a value of another lane."""
    mode = instruction.parts[2] if "sync" in instruction.parts else instruction.parts[1]
    operands = machine.operands
    targets, value, offset, clamp = instruction.operands[:4]
    target, *flag = targets.split("|")
    write = operands.target(target, _B32)
    write_flag = operands.target(flag[0], _PRED) if flag else None
    register = operands.source(value, _B32)
    offsets, clamps = operands.source(offset, _U32), operands.source(clamp, _U32)

    def run(lanes: Lanes) -> None:
        table, rows, columns = warp_table(machine.grid, lanes)
        column = columns.astype(np.int64)
        step = np.asarray(offsets(lanes)).astype(np.int64) & 31
        clamp_bits = np.asarray(clamps(lanes)).astype(np.int64)
        segment, bound = clamp_bits >> 8 & 31, clamp_bits & 31
        last = (column & segment) | (bound & ~segment)
        source, inside = _shuffle_source(mode, column, step, segment, last)
        chosen = np.where(inside, source, column)
        giver = table[rows, chosen]
        if (missing := giver < 0).any():
            active = machine.grid.lanes[lanes]
            machine.faults.report(
                FaultKind.DIVERGENT_WARP,
                instruction,
                active[missing],
                "a shuffle reads a lane that does not take part",
            )
            giver = np.where(missing, active, giver)
        write(lanes, register(giver))
        if write_flag is not None:
            write_flag(lanes, inside)

    return run


def _shuffle_source(
    mode: str, column: Array, step: Array, segment: Array, last: Array
) -> tuple[Array, Array]:
    """Return the lane that each lane reads, and whether it lies inside the segment."""
    if mode == "up":
        return column - step, column - step >= last
    if mode == "down":
        return column + step, column + step <= last
    if mode == "bfly":
        return column ^ step, (column ^ step) <= last
    source = (column & segment) | (step & ~segment)
    return source, source <= last


def _ballots(table: Array, rows: Array, columns: Array, values: Array) -> Array:
    """Return for each warp the mask of the lanes whose value is true."""
    ballots = np.zeros(len(table), np.uint32)
    np.bitwise_or.at(
        ballots, rows, np.where(values, np.uint32(1) << columns.astype(np.uint32), np.uint32(0))
    )
    return ballots


def _vote(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`vote.sync.ballot.b32 d, p, mask`."""
    mode = instruction.parts[2]
    operands = machine.operands
    target, predicate = instruction.operands[:2]
    negated = predicate.startswith("!")
    source = operands.source(predicate.lstrip("!"), _PRED)
    write = operands.target(target, _U32 if mode == "ballot" else _PRED)

    def run(lanes: Lanes) -> None:
        table, rows, columns = warp_table(machine.grid, lanes)
        values = np.broadcast_to(source(lanes), rows.shape) ^ negated
        yes = _ballots(table, rows, columns, values)[rows]
        no = _ballots(table, rows, columns, ~values)[rows]
        result = {
            "ballot": yes,
            "all": no == 0,
            "any": yes != 0,
            "uni": (yes == 0) | (no == 0),
        }[mode]
        write(lanes, result)

    return run


def _active_mask(machine: Machine, instruction: PtxInstruction) -> Handler:
    write = machine.operands.target(instruction.operands[0], _U32)

    def run(lanes: Lanes) -> None:
        table, rows, columns = warp_table(machine.grid, lanes)
        write(lanes, _ballots(table, rows, columns, np.ones(len(rows), np.bool_))[rows])

    return run


def _match(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`match.any.sync`: the lanes with the same value; `match.all.sync`: all lanes, or none."""
    kind = last_type(instruction)
    operands = machine.operands
    targets, value = instruction.operands[:2]
    target, *flag = targets.split("|")
    write = operands.target(target, _U32)
    write_flag = operands.target(flag[0], _PRED) if flag else None
    source = operands.source(value, kind)
    wants_all = "all" in instruction.parts

    def run(lanes: Lanes) -> None:
        table, rows, columns = warp_table(machine.grid, lanes)
        values = np.zeros(table.shape, kind.dtype)
        values[rows, columns] = source(lanes)
        equal = values[rows] == values[rows, columns][:, None]
        equal &= table[rows] >= 0
        masks = (equal.astype(np.uint32) << _POSITIONS.astype(np.uint32)).sum(
            axis=1, dtype=np.uint32
        )
        if wants_all:
            same = (equal == (table[rows] >= 0)).all(axis=1)
            masks = np.where(same, masks, np.uint32(0))
            if write_flag is not None:
                write_flag(lanes, same)
        write(lanes, masks)

    return run


_REDUCE: dict[str, tuple[Callable[..., Any], int]] = {
    "add": (np.add, 0),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
    "min": (np.minimum, -1),
    "max": (np.maximum, 0),
}


def _reduce(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`redux.sync.add.s32 d, a, mask`."""
    kind = last_type(instruction)
    name = instruction.parts[2]
    if kind.is_float or name not in _REDUCE:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    operation, neutral = _REDUCE[name]
    if name in ("min", "max"):
        limits = np.iinfo(kind.dtype)
        neutral = int(limits.max if name == "min" else limits.min)
    operands = machine.operands
    write = operands.target(instruction.operands[0], kind)
    source = operands.source(instruction.operands[1], kind)

    def run(lanes: Lanes) -> None:
        table, rows, columns = warp_table(machine.grid, lanes)
        values = np.full(table.shape, operands.bits(neutral, kind), kind.dtype)
        values[rows, columns] = source(lanes)
        write(lanes, operation.reduce(values, axis=1)[rows])  # type: ignore[attr-defined]

    return run


def _elect(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`elect.sync d|p, mask`: one lane of the warp is the leader."""
    operands = machine.operands
    target, *flag = instruction.operands[0].split("|")
    write = operands.target(target, _U32)
    write_flag = operands.target(flag[0], _PRED)

    def run(lanes: Lanes) -> None:
        table, rows, columns = warp_table(machine.grid, lanes)
        leaders = (table >= 0).argmax(axis=1)[rows]
        write(lanes, leaders)
        write_flag(lanes, columns == leaders)

    return run


WARP: dict[str, Builder] = {
    "shfl": _shuffle,
    "vote": _vote,
    "match": _match,
    "redux": _reduce,
    "elect": _elect,
}
"""Instructions that wait for the lanes of a member mask."""

WARP_STATE: dict[str, Builder] = {"activemask": _active_mask}
