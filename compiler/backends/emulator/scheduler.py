"""The order in which lanes run: divergence, reconvergence, barriers, deadlocks.

Lanes at one instruction form a group and run together, across warps and blocks. The group at the
smallest position runs first, and groups that meet become one: so branches reconverge where their
paths meet. An instruction of a warp waits until the lanes of its member mask have arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.backends.emulator.errors import StopEmulation
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.instructions.decode import decode
from compiler.backends.emulator.instructions.warp import WARP
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import Instruction
from compiler.backends.emulator.types import ALL, Array, Lanes, ptx_type

_PLAIN, _BRANCH, _EXIT, _BARRIER, _WARP = range(5)
_U32 = ptx_type("u32")
_END = 1 << 60


@dataclass(slots=True)
class _Group:
    """Lanes that are at one instruction."""

    position: int
    lanes: Lanes


class Scheduler:
    """Runs the lanes of a machine.

    Args:
        machine: The state.
        max_steps: The run stops after this number of instructions of groups, as endless.
    """

    def __init__(self, machine: Machine, max_steps: int) -> None:
        self._machine = machine
        self._grid = machine.grid
        self._instructions = machine.program.instructions
        self._kinds = [_kind(instruction) for instruction in self._instructions]
        self._handlers: list[Handler | None] = [
            decode(machine, instruction)
            if kind in (_PLAIN, _WARP) and not _is_warp_barrier(instruction)
            else None
            for instruction, kind in zip(self._instructions, self._kinds, strict=True)
        ]
        self._runnable = [_Group(0, ALL)]
        self._at_barrier: list[_Group] = []
        self._in_warp: list[_Group] = []
        self._has_exited = np.zeros(self._grid.num_lanes, np.bool_)
        self._steps_left = max_steps

    def run(self) -> None:
        """Run until all lanes have returned.

        Raises:
            StopEmulation: If a fault ends the run.
        """
        while True:
            while self._runnable:
                self._run_group(self._next_group())
            if not (self._at_barrier or self._in_warp):
                return
            self._resolve_standstill()

    def _next_group(self) -> _Group:
        """Return the group at the smallest position, merged with others there."""
        runnable = self._runnable
        position = min(group.position for group in runnable)
        here = [group for group in runnable if group.position == position]
        self._runnable = [group for group in runnable if group.position != position]
        return _Group(position, self._merge([group.lanes for group in here]))

    def _merge(self, parts: list[Lanes]) -> Lanes:
        if len(parts) == 1:
            return parts[0]
        lanes = np.sort(np.concatenate([self._grid.lanes[part] for part in parts]))
        return self._whole(lanes)

    def _whole(self, lanes: Array) -> Lanes:
        return ALL if len(lanes) == self._grid.num_lanes else lanes

    def _run_group(self, group: _Group) -> None:
        """Run a group until it meets another, waits, or has returned."""
        position, lanes = group.position, group.lanes
        limit = min((other.position for other in self._runnable), default=_END)
        instructions, kinds, handlers = self._instructions, self._kinds, self._handlers
        while position < limit:
            self._steps_left -= 1
            if self._steps_left < 0:
                self._stop_endless(position, lanes)
            instruction, kind = instructions[position], kinds[position]
            active = lanes if instruction.guard is None else self._guarded(instruction, lanes)
            if active is None:
                position += 1
            elif kind == _PLAIN:
                handlers[position](active)  # type: ignore[misc]
                position += 1
            else:
                following = self._control(kind, position, lanes, active)
                if following is None:
                    return
                lanes, position = following, position + 1
        self._runnable.append(_Group(position, lanes))

    def _control(self, kind: int, position: int, lanes: Lanes, active: Lanes) -> Lanes | None:
        """Run a branch, a return, or an instruction that waits for other lanes.

        Returns:
            The lanes that continue after it at once; None if the group ends here.
        """
        rest = self._without(lanes, active)
        if kind == _EXIT:
            self._has_exited[active] = True
            return rest
        if rest is not None:
            self._runnable.append(_Group(position + 1, rest))
        if kind == _BRANCH:
            self._runnable.append(_Group(self._instructions[position].target, active))
        elif kind == _BARRIER:
            self._at_barrier.append(_Group(position, active))
            self._release_barriers()
        else:
            self._arrive_in_warp(position, active)
        return None

    def _guarded(self, instruction: Instruction, lanes: Lanes) -> Lanes | None:
        """Return the lanes whose predicate lets them run the instruction; None if none."""
        assert instruction.guard is not None
        predicate = self._machine.operands.registers[instruction.guard][lanes]
        if instruction.is_negated:
            predicate = ~predicate
        if predicate.all():
            return lanes
        if not predicate.any():
            return None
        active: Array = np.flatnonzero(predicate)
        return active if lanes is ALL else self._grid.lanes[lanes][active]

    def _without(self, lanes: Lanes, active: Lanes) -> Lanes | None:
        """Return the lanes that are not active; None if all are."""
        if active is lanes:
            return None
        marked = np.zeros(self._grid.num_lanes, np.bool_)
        marked[lanes] = True
        marked[active] = False
        return np.flatnonzero(marked)

    # Warps

    def _arrive_in_warp(self, position: int, lanes: Lanes) -> None:
        """Run an instruction of a warp for the warps that are complete."""
        waiting = [group for group in self._in_warp if group.position == position]
        if waiting:
            self._in_warp = [group for group in self._in_warp if group.position != position]
            lanes = self._merge([lanes, *(group.lanes for group in waiting)])
        complete = self._complete(self._instructions[position], lanes)
        if complete is None:
            self._in_warp.append(_Group(position, lanes))
            return
        rest = self._without(lanes, complete)
        if rest is not None:
            self._in_warp.append(_Group(position, rest))
        self._run_in_warp(position, complete)

    def _run_in_warp(self, position: int, lanes: Lanes) -> None:
        handler = self._handlers[position]
        if handler is not None:
            handler(lanes)
        else:
            self._machine.clocks.barrier_of_warps(lanes)
        self._runnable.append(_Group(position + 1, lanes))

    def _complete(self, instruction: Instruction, lanes: Lanes) -> Lanes | None:
        """Return the lanes of those warps whose member mask has arrived; None if there are none."""
        if lanes is ALL:
            return lanes
        grid = self._grid
        missing = self._member_bits(instruction, lanes) & ~self._arrived_bits(lanes)
        ready = missing == 0
        if ready.all():
            return lanes
        return grid.lanes[lanes][ready] if ready.any() else None

    def _member_bits(self, instruction: Instruction, lanes: Lanes) -> Array:
        """Return for each lane its member mask, without lanes that the warp does not have."""
        grid = self._grid
        threads = grid.threads[lanes] // 32 * 32
        size = np.minimum(32, grid.num_threads - threads).astype(np.uint64)
        existing = ((np.uint64(1) << size) - np.uint64(1)).astype(np.uint32)
        if instruction.opcode not in ("shfl", "vote", "match", "redux", "elect", "bar"):
            return existing
        mask = self._machine.operands.source(instruction.operands[-1], _U32)(lanes)
        return existing & mask

    def _arrived_bits(self, lanes: Lanes) -> Array:
        grid = self._grid
        bits = np.zeros(int(grid.warps[-1]) + 1, np.uint32)
        own = np.uint32(1) << (grid.threads[lanes] % 32).astype(np.uint32)
        np.bitwise_or.at(bits, grid.warps[lanes], own)
        return bits[grid.warps[lanes]]

    # Barriers

    def _release_barriers(self) -> None:
        """Let the blocks go on whose threads have all arrived."""
        grid = self._grid
        lanes = self._merge([group.lanes for group in self._at_barrier])
        if lanes is ALL:
            ready: Array = np.ones(len(grid.blocks), np.bool_)
        else:
            count = len(grid.blocks)
            arrived = np.bincount(grid.slots[lanes], minlength=count)
            exited = np.bincount(grid.slots[self._has_exited], minlength=count)
            ready = (arrived > 0) & (arrived + exited == grid.num_threads)
            if not ready.any():
                return
            self._check_exited(lanes, ready & (exited > 0))
        waiting: list[_Group] = []
        self._check_one_barrier(ready)
        for group in self._at_barrier:
            chosen = ready[grid.slots[group.lanes]]
            active = grid.lanes[group.lanes]
            if chosen.any():
                leaving = self._whole(active[chosen])
                self._machine.clocks.barrier(leaving)
                self._runnable.append(_Group(group.position + 1, leaving))
            if not chosen.all():
                waiting.append(_Group(group.position, active[~chosen]))
        self._at_barrier = waiting

    def _check_exited(self, lanes: Lanes, faulty: Array) -> None:
        active = self._grid.lanes[lanes]
        wrong = faulty[self._grid.slots[active]]
        if wrong.any():
            group = self._at_barrier[0]
            self._machine.faults.report(
                FaultKind.DIVERGENT_BARRIER,
                self._instructions[group.position],
                active[wrong],
                "other threads of the block have returned and never arrive at the barrier",
            )

    def _check_one_barrier(self, ready: Array) -> None:
        """Report blocks whose threads wait at several barrier instructions."""
        if len(self._at_barrier) < 2:
            return
        first = np.full(len(self._grid.blocks), -1)
        for group in self._at_barrier:
            slots = self._grid.slots[group.lanes]
            before = first[slots]
            wrong = ready[slots] & (before >= 0) & (before != group.position)
            if wrong.any():
                self._machine.faults.report(
                    FaultKind.DIVERGENT_BARRIER,
                    self._instructions[group.position],
                    self._grid.lanes[group.lanes][wrong],
                    "other threads of the block wait at another barrier instruction, at line "
                    f"{self._instructions[int(before[wrong][0])].ptx_line} of the PTX",
                )
            first[slots] = group.position

    # Ends of a run that cannot go on

    def _resolve_standstill(self) -> None:
        """Report why no lane can run on; let incomplete warps go on without the missing lanes."""
        if self._in_warp:
            for group in self._in_warp:
                self._machine.faults.report(
                    FaultKind.DIVERGENT_WARP,
                    self._instructions[group.position],
                    self._grid.lanes[group.lanes],
                    "lanes of the member mask never arrive at this instruction",
                )
            waiting, self._in_warp = self._in_warp, []
            for group in waiting:
                self._run_in_warp(group.position, group.lanes)
            return
        for group in self._at_barrier:
            self._machine.faults.report(
                FaultKind.DEADLOCK,
                self._instructions[group.position],
                self._grid.lanes[group.lanes],
                "threads wait at a barrier at which others of the block never arrive",
            )
        raise StopEmulation

    def _stop_endless(self, position: int, lanes: Lanes) -> None:
        self._machine.faults.stop(
            FaultKind.ENDLESS_LOOP,
            self._instructions[position],
            self._grid.lanes[lanes],
            "the limit of instructions is reached: the kernel seems to run forever",
        )


def _kind(instruction: Instruction) -> int:
    name = instruction.opcode
    if name == "bra":
        return _BRANCH
    if name in ("ret", "exit"):
        return _EXIT
    if name in WARP or _is_warp_barrier(instruction):
        return _WARP
    if name in ("bar", "barrier"):
        return _BARRIER
    return _PLAIN


def _has_handler(instruction: Instruction, kind: int) -> bool:
    return kind in (_PLAIN, _WARP) and not _is_warp_barrier(instruction)


def _is_warp_barrier(instruction: Instruction) -> bool:
    return instruction.opcode == "bar" and "warp" in instruction.parts
