"""Barriers of the threads of a block: `bar.sync`, `bar.arrive` and `bar.red`."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.groups import GroupQueue, LaneGroup
from compiler.backends.emulator.machine import Machine
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, Lanes, ptx_type

_U32, _PRED = ptx_type("u32"), ptx_type("pred")


class BlockBarriers:
    """The threads that wait at barriers.

    A barrier has a number. It lets its threads go on if all threads of the block have arrived, or
    as many as the instruction says. Threads that have returned do not count: since Volta, barriers
    wait for the others only (Volta tuning guide, independent thread scheduling).
    """

    def __init__(self, machine: Machine, queue: GroupQueue) -> None:
        self._machine = machine
        self._grid = machine.grid
        self._queue = queue
        self._waiting: list[LaneGroup] = []
        # Arrivals without waiting: by barrier, the number in each block; and their clocks.
        self._arrivals: dict[int, Array] = {}
        self._rows: dict[int, dict[int, list[Array]]] = defaultdict(lambda: defaultdict(list))
        self.has_exited = np.zeros(self._grid.num_lanes, np.bool_)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def arrive(self, position: int, lanes: Lanes) -> None:
        """Let lanes arrive at the barrier instruction at a position."""
        instruction = self._machine.program.instructions[position]
        if "arrive" in instruction.parts:
            self._arrive_only(instruction, lanes)
            self._queue.add(position + 1, lanes)
        else:
            self._waiting.append(LaneGroup(position, lanes))
        self.release()

    def release(self) -> None:
        """Let the blocks go on whose threads have all arrived."""
        numbers = {self._number(group.position) for group in self._waiting}
        for number in numbers:
            self._release_one(number)

    def _release_one(self, number: int) -> None:
        grid = self._grid
        groups = [group for group in self._waiting if self._number(group.position) == number]
        lanes = self._queue.merge([group.lanes for group in groups])
        count = len(grid.blocks)
        arrived = np.bincount(grid.slots[lanes], minlength=count)
        expected = self._expected(groups[0])
        exited = np.bincount(grid.slots[self.has_exited], minlength=count)
        if expected is None:
            ready = (arrived > 0) & (arrived + exited == grid.num_threads)
        else:
            arrived = arrived + self._arrivals.get(number, 0)
            ready = arrived >= expected
        if not ready.any():
            return
        if expected is None:
            self._check(groups, ready)
        chosen = ready[grid.slots[lanes]]
        leaving = self._queue.whole(grid.lanes[lanes][chosen])
        self._synchronize(number, leaving, expected is not None)
        for group in groups:
            self._leave(group, ready)

    def _leave(self, group: LaneGroup, ready: Array) -> None:
        grid = self._grid
        active = grid.lanes[group.lanes]
        chosen = ready[grid.slots[active]]
        self._waiting.remove(group)
        if chosen.any():
            leaving = self._queue.whole(active[chosen])
            self._reduce(group.position, leaving)
            self._queue.add(group.position + 1, leaving)
        if not chosen.all():
            self._waiting.append(LaneGroup(group.position, active[~chosen]))

    def _synchronize(self, number: int, leaving: Lanes, is_partial: bool) -> None:
        clocks = self._machine.clocks
        if not is_partial:
            clocks.barrier_of_blocks(leaving)
            return
        for slot in np.unique(self._grid.slots[leaving]):
            for row in self._rows[number].pop(int(slot), []):
                members = self._grid.lanes[leaving]
                clocks.acquire(members[self._grid.slots[members] == slot], row)
            if number in self._arrivals:
                self._arrivals[number][slot] = 0
        clocks.barrier_of_part(leaving)

    def _arrive_only(self, instruction: PtxInstruction, lanes: Lanes) -> None:
        grid, number = self._grid, self._operand(instruction, 0)
        arrivals = self._arrivals.setdefault(number, np.zeros(len(grid.blocks), np.int64))
        arrivals += np.bincount(grid.slots[lanes], minlength=len(grid.blocks))
        active = grid.lanes[lanes]
        _, first = np.unique(grid.warps[active], return_index=True)
        for lane in active[first]:
            row = self._machine.clocks.release(int(lane))
            self._rows[number][int(grid.slots[lane])].append(row)

    def _reduce(self, position: int, leaving: Lanes) -> None:
        """Give all threads the reduction of their predicates, for `bar.red`."""
        instruction = self._machine.program.instructions[position]
        if "red" not in instruction.parts:
            return
        operands = self._machine.operands
        source = instruction.operands[-1]
        values = operands.source(source.lstrip("!"), _PRED)(leaving) ^ source.startswith("!")
        slots = self._grid.slots[leaving]
        size = len(self._grid.blocks)
        total = np.bincount(slots[values], minlength=size)[slots]
        if "popc" in instruction.parts:
            operands.target(instruction.operands[0], _U32)(leaving, total)
        else:
            wanted = np.bincount(slots, minlength=size)[slots] if "and" in instruction.parts else 1
            operands.target(instruction.operands[0], _PRED)(leaving, total >= wanted)

    def _number(self, position: int) -> int:
        return self._operand(self._machine.program.instructions[position], 0)

    def _expected(self, group: LaneGroup) -> int | None:
        """Return the number of threads that an instruction names; None for the whole block."""
        instruction = self._machine.program.instructions[group.position]
        has_count = len(instruction.operands) == (4 if "red" in instruction.parts else 2)
        return self._operand(instruction, 1) if has_count else None

    def _operand(self, instruction: PtxInstruction, number: int) -> int:
        texts = instruction.operands[1:] if "red" in instruction.parts else instruction.operands
        if not texts:
            return 0
        value = self._machine.operands.source(texts[number], _U32)(slice(None))
        return int(value if np.ndim(value) == 0 else value[0])

    # Faults

    def _check(self, groups: list[LaneGroup], ready: Array) -> None:
        """Report blocks whose threads wait at several instructions."""
        grid, faults = self._grid, self._machine.faults
        instructions = self._machine.program.instructions
        first = np.full(len(grid.blocks), -1)
        for group in groups:
            slots = grid.slots[group.lanes]
            before = first[slots]
            wrong = ready[slots] & (before >= 0) & (before != group.position)
            if wrong.any():
                faults.report(
                    FaultKind.DIVERGENT_BARRIER,
                    instructions[group.position],
                    grid.lanes[group.lanes][wrong],
                    "other threads of the block wait at another barrier instruction, at line "
                    f"{instructions[int(before[wrong][0])].ptx_line} of the PTX",
                )
            first[slots] = group.position

    def report_deadlock(self) -> None:
        """Report the threads that wait forever."""
        for group in self._waiting:
            self._machine.faults.report(
                FaultKind.DEADLOCK,
                self._machine.program.instructions[group.position],
                self._grid.lanes[group.lanes],
                "threads wait at a barrier at which others of the block never arrive",
            )
