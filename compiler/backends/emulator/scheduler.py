"""The order in which lanes run: divergence, reconvergence, waiting, deadlocks.

Lanes at one instruction form a group and run together, across warps and blocks. The group at the
smallest position runs first, and groups that meet become one: so branches reconverge where their
paths meet. An instruction of a warp waits until the lanes of its member mask have arrived.
"""

from __future__ import annotations

import numpy as np

from compiler.backends.emulator.block_barriers import BlockBarriers
from compiler.backends.emulator.errors import StopEmulation
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.groups import GroupQueue, LaneGroup, Order
from compiler.backends.emulator.instructions.decode import decode
from compiler.backends.emulator.instructions.mbarrier import wait_of
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import ALL, Array, Lanes, ptx_type

_PLAIN, _BRANCH, _EXIT, _BARRIER, _WARP, _WARP_BARRIER, _SIGNAL, _WAIT = range(8)
_U32 = ptx_type("u32")

_WITH_MASK = ("shfl", "vote", "match", "redux", "elect", "bar")
_WARP_WIDE = (*_WITH_MASK[:-1], "ldmatrix", "stmatrix", "mma", "wgmma")


class Scheduler:
    """Runs the lanes of a machine.

    Args:
        machine: The state.
        order: How warps take turns.
        max_steps: The run stops after this number of instructions of groups, as endless.
    """

    def __init__(self, machine: Machine, order: Order, max_steps: int) -> None:
        self._machine = machine
        self._grid = machine.grid
        self._instructions = machine.program.instructions
        self._kinds = [_kind(instruction) for instruction in self._instructions]
        self._handlers: list[Handler | None] = [
            decode(machine, instruction) if kind in (_PLAIN, _WARP, _SIGNAL) else None
            for instruction, kind in zip(self._instructions, self._kinds, strict=True)
        ]
        self._waits = {
            position: wait_of(machine, instruction)
            for position, instruction in enumerate(self._instructions)
            if self._kinds[position] == _WAIT
        }
        self._queue = GroupQueue(machine.grid, order)
        self._queue.add(0, ALL)
        self._barriers = BlockBarriers(machine, self._queue)
        self._in_warp: list[LaneGroup] = []
        self._waiting: list[LaneGroup] = []
        self._steps_left = max_steps
        self._issues = machine.counters.issues

    def run(self) -> None:
        """Run until all lanes have returned.

        Raises:
            StopEmulation: If a fault ends the run.
        """
        while True:
            while self._queue:
                self._run_group(self._queue.pop())
            if not (self._barriers or self._in_warp or self._waiting):
                return
            self._resolve_standstill()

    def _run_group(self, group: LaneGroup) -> None:
        """Run a group until it meets another, waits, or has returned."""
        position, lanes = group.position, group.lanes
        limit = self._queue.limit(group.priority)
        instructions, kinds, handlers = self._instructions, self._kinds, self._handlers
        issues, num_warps = self._issues, self._num_warps(lanes)
        while position < limit:
            self._steps_left -= 1
            if self._steps_left < 0:
                self._stop_endless(position, lanes)
            issues[position] += num_warps
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
                num_warps = self._num_warps(lanes)
        self._queue.add(position, lanes)

    def _control(self, kind: int, position: int, lanes: Lanes, active: Lanes) -> Lanes | None:
        """Run a branch, a return, or an instruction that waits for other lanes.

        Returns:
            The lanes that continue after it at once; None if the group ends here.
        """
        rest = self._queue.without(lanes, active)
        if kind == _EXIT:
            self._barriers.has_exited[active] = True
            self._barriers.release()
            return rest
        if rest is not None:
            self._queue.add(position + 1, rest)
        if kind == _BRANCH:
            self._queue.add(self._instructions[position].target, active)
        elif kind == _BARRIER:
            self._barriers.arrive(position, active)
        elif kind == _SIGNAL:
            self._handlers[position](active)  # type: ignore[misc]
            self._queue.add(position + 1, active)
            self._poll()
        elif kind == _WAIT:
            self._waiting.append(LaneGroup(position, active))
            self._poll()
        else:
            self._arrive_in_warp(position, active)
        return None

    def _num_warps(self, lanes: Lanes) -> int:
        warps = self._grid.warps[lanes]
        return 1 + int(np.count_nonzero(warps[1:] != warps[:-1]))

    def _guarded(self, instruction: PtxInstruction, lanes: Lanes) -> Lanes | None:
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

    # Waiting for mbarriers

    def _poll(self) -> None:
        """Let the lanes go on whose mbarrier has completed its phase."""
        waiting, self._waiting = self._waiting, []
        for group in waiting:
            ready = self._waits[group.position](group.lanes)
            if ready.any():
                active = self._grid.lanes[group.lanes]
                self._queue.add(group.position + 1, self._queue.whole(active[ready]))
            if not ready.all():
                active = self._grid.lanes[group.lanes]
                self._waiting.append(LaneGroup(group.position, active[~ready]))

    # Warps

    def _arrive_in_warp(self, position: int, lanes: Lanes) -> None:
        """Run an instruction of a warp for the warps that are complete."""
        waiting = [group for group in self._in_warp if group.position == position]
        if waiting:
            self._in_warp = [group for group in self._in_warp if group.position != position]
            lanes = self._queue.merge([lanes, *(group.lanes for group in waiting)])
        complete = self._complete(self._instructions[position], lanes)
        if complete is None:
            self._in_warp.append(LaneGroup(position, lanes))
            return
        rest = self._queue.without(lanes, complete)
        if rest is not None:
            self._in_warp.append(LaneGroup(position, rest))
        self._run_in_warp(position, complete)

    def _run_in_warp(self, position: int, lanes: Lanes) -> None:
        handler = self._handlers[position]
        if handler is not None:
            handler(lanes)
        else:
            self._machine.clocks.barrier_of_warps(lanes)
        self._queue.add(position + 1, lanes)

    def _complete(self, instruction: PtxInstruction, lanes: Lanes) -> Lanes | None:
        """Return the lanes of those warps whose member mask has arrived; None if there are none."""
        if lanes is ALL:
            return lanes
        grid = self._grid
        missing = self._member_bits(instruction, lanes) & ~self._arrived_bits(lanes)
        incomplete = np.zeros(int(grid.warps[-1]) + 1, np.bool_)
        incomplete[grid.warps[lanes][missing != 0]] = True
        if instruction.opcode == "wgmma":  # Four warps run it together.
            arrived = np.zeros(len(incomplete), np.bool_)
            arrived[grid.warps[lanes]] = True
            incomplete |= ~arrived
            groups = np.arange(len(incomplete)) // 4
            incomplete = np.bincount(groups, incomplete)[groups] > 0
        ready = ~incomplete[grid.warps[lanes]]
        if ready.all():
            return lanes
        return grid.lanes[lanes][ready] if ready.any() else None

    def _member_bits(self, instruction: PtxInstruction, lanes: Lanes) -> Array:
        """Return for each lane its member mask, without lanes that the warp does not have."""
        grid = self._grid
        threads = grid.threads[lanes] // 32 * 32
        size = np.minimum(32, grid.num_threads - threads).astype(np.uint64)
        existing = ((np.uint64(1) << size) - np.uint64(1)).astype(np.uint32)
        if instruction.opcode not in _WITH_MASK:
            return existing
        mask = self._machine.operands.source(instruction.operands[-1], _U32)(lanes)
        return existing & mask

    def _arrived_bits(self, lanes: Lanes) -> Array:
        grid = self._grid
        bits = np.zeros(int(grid.warps[-1]) + 1, np.uint32)
        lane_bits = np.uint32(1) << (grid.threads[lanes] % 32).astype(np.uint32)
        np.bitwise_or.at(bits, grid.warps[lanes], lane_bits)
        return bits[grid.warps[lanes]]

    # Ends of a run that cannot go on

    def _resolve_standstill(self) -> None:
        """Complete an asynchronous copy, or else report why no lane can run on."""
        if self._waiting and self._machine.tensor_copies.complete_one():
            self._poll()
            return
        if self._in_warp:
            self._run_incomplete_warps()
            return
        for group in self._waiting:
            self._machine.faults.report(
                FaultKind.DEADLOCK,
                self._instructions[group.position],
                self._grid.lanes[group.lanes],
                "threads wait for an mbarrier whose phase never completes",
            )
        self._barriers.report_deadlock()
        raise StopEmulation

    def _run_incomplete_warps(self) -> None:
        """Report warps with missing lanes, and let the others go on without them."""
        waiting, self._in_warp = self._in_warp, []
        for group in waiting:
            self._machine.faults.report(
                FaultKind.DIVERGENT_WARP,
                self._instructions[group.position],
                self._grid.lanes[group.lanes],
                "lanes of the member mask never arrive at this instruction",
            )
            self._run_in_warp(group.position, group.lanes)

    def _stop_endless(self, position: int, lanes: Lanes) -> None:
        self._machine.faults.stop(
            FaultKind.ENDLESS_LOOP,
            self._instructions[position],
            self._grid.lanes[lanes],
            "the limit of instructions is reached: the kernel seems to run forever",
        )


_CONTROL = {
    "bra": _BRANCH,
    "ret": _EXIT,
    "exit": _EXIT,
    **dict.fromkeys(_WARP_WIDE, _WARP),
}


def _kind(instruction: PtxInstruction) -> int:
    parts = instruction.parts
    if parts[0] == "mbarrier":
        return _WAIT if parts[1] in ("try_wait", "test_wait") else _SIGNAL
    if parts[0] in ("bar", "barrier"):
        return _WARP_BARRIER if "warp" in parts else _BARRIER
    return _CONTROL.get(parts[0], _PLAIN)
