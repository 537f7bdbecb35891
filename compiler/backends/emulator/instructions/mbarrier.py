"""Instructions on mbarriers. The scheduler asks `wait_of` whether waiting lanes may go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.instructions.builder import Builder
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.mbarriers import MBarrier
from compiler.backends.emulator.operands import Source
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, Lanes, ptx_type

_U32, _U64, _PRED = ptx_type("u32"), ptx_type("u64"), ptx_type("pred")
_BARRIER_BYTES = 8
_ADDRESS_BITS = 32


def _addresses(
    machine: Machine, instruction: PtxInstruction, address: Source, lanes: Lanes
) -> Iterator[tuple[int, int, int]]:
    """Yield each lane with its block and the address of its mbarrier."""
    active = machine.grid.lanes[lanes]
    addresses = np.broadcast_to(address(lanes), active.shape)
    memory = machine.shared_memory
    access = memory.resolve(LaneAccess(instruction, addresses, _BARRIER_BYTES, active))
    for lane, offset in zip(machine.grid.lanes[access.lanes], access.offsets, strict=True):
        yield int(lane), int(machine.grid.slots[lane]), int(offset - memory.bases[lane])


def barrier_at(
    machine: Machine, instruction: PtxInstruction, lane: int, slot: int, address: int
) -> MBarrier:
    """Return an initialized mbarrier.

    Raises:
        StopEmulation: If it is not initialized.
    """
    barrier = machine.mbarriers.at(slot, address)
    if barrier is None:
        machine.faults.stop(
            FaultKind.UNINITIALIZED,
            instruction,
            np.array([lane]),
            f"no mbarrier is initialized at byte {address} of the shared memory",
        )
    assert barrier is not None
    return barrier


def _value(source: Source, lane: int) -> int:
    value = source(np.array([lane]))
    return int(value[0]) if np.ndim(value) else int(value)


def _initialize(machine: Machine, instruction: PtxInstruction) -> Handler:
    address = machine.operands.address(instruction.operands[0])
    count = machine.operands.source(instruction.operands[1], _U32)

    def run(lanes: Lanes) -> None:
        for lane, slot, offset in _addresses(machine, instruction, address, lanes):
            machine.mbarriers.initialize(slot, offset, _value(count, lane))
            machine.shared_memory.write(_access(machine, instruction, lane, offset))

    return run


def _invalidate(machine: Machine, instruction: PtxInstruction) -> Handler:
    address = machine.operands.address(instruction.operands[0])

    def run(lanes: Lanes) -> None:
        for _, slot, offset in _addresses(machine, instruction, address, lanes):
            machine.mbarriers.invalidate(slot, offset)

    return run


def _arrive(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`mbarrier.arrive{.expect_tx}.shared.b64 state, [address], count`."""
    target, operand, *rest = instruction.operands
    if not operand.startswith("["):
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    expects = "expect_tx" in instruction.parts
    address = machine.operands.address(operand)
    number = machine.operands.source(rest[0], _U32) if rest else None
    write = machine.operands.target(target, _U64)

    def run(lanes: Lanes) -> None:
        for lane, slot, offset in _addresses(machine, instruction, address, lanes):
            barrier = _used(machine, instruction, lane, slot, offset)
            amount = 1 if number is None else _value(number, lane)
            if expects:
                barrier.expect(amount)
            write(np.array([lane]), barrier.phase)
            if not barrier.arrive(1 if expects else amount, machine.clocks.release(lane)):
                machine.faults.report(
                    FaultKind.INVALID_OPERAND,
                    instruction,
                    np.array([lane]),
                    "more threads arrive at the mbarrier than its count",
                )

    return run


def _expect(machine: Machine, instruction: PtxInstruction) -> Handler:
    address = machine.operands.address(instruction.operands[0])
    number = machine.operands.source(instruction.operands[1], _U32)

    def run(lanes: Lanes) -> None:
        for lane, slot, offset in _addresses(machine, instruction, address, lanes):
            _used(machine, instruction, lane, slot, offset).expect(_value(number, lane))

    return run


def _used(
    machine: Machine, instruction: PtxInstruction, lane: int, slot: int, offset: int
) -> MBarrier:
    """Return an mbarrier, and check that its initialization is visible to the lane."""
    shadow = machine.shared_memory.shadow
    assert shadow is not None
    barrier = barrier_at(machine, instruction, lane, slot, offset)
    shadow.read(_access(machine, instruction, lane, offset))
    return barrier


def _access(machine: Machine, instruction: PtxInstruction, lane: int, offset: int) -> LaneAccess:
    """Return the access of a lane to an mbarrier of its block."""
    position = machine.shared_memory.bases[lane] + offset
    return LaneAccess(instruction, np.array([position]), _BARRIER_BYTES, np.array([lane]))


def wait_of(machine: Machine, instruction: PtxInstruction) -> Callable[[Lanes], Array]:
    """Return the function that says which lanes of a `try_wait` or `test_wait` may go on.

    Their predicate becomes true. A wait that returns false after a time is not modelled.
    """
    target, operand, phase = instruction.operands[:3]
    address = machine.operands.address(operand)
    has_parity = "parity" in instruction.parts
    source = machine.operands.source(phase, _U32 if has_parity else _U64)
    write = machine.operands.target(target, _PRED)

    def ready(lanes: Lanes) -> Array:
        active = machine.grid.lanes[lanes]
        parity = np.broadcast_to(source(lanes), active.shape) & 1
        offsets = np.broadcast_to(address(lanes), active.shape)
        slots = machine.grid.slots[active].astype(np.int64)
        # One number for each block, address and parity, quicker to sort than rows of three.
        keys = slots << _ADDRESS_BITS + 1 | offsets.astype(np.int64) << 1 | parity.astype(np.int64)
        distinct, groups = np.unique(keys, return_inverse=True)
        result = np.zeros(len(active), np.bool_)
        for number, key in enumerate(distinct.tolist()):
            members = active[groups == number]
            first = int(members[0])
            offset = key >> 1 & (1 << _ADDRESS_BITS) - 1
            barrier = _used(machine, instruction, first, key >> _ADDRESS_BITS + 1, offset)
            if barrier.is_complete(key & 1):
                result[groups == number] = True
                if barrier.released is not None:
                    machine.clocks.acquire(members, barrier.released)
        write(active[result], True)
        return result

    return ready


_BY_NAME: dict[str, Builder] = {
    "init": _initialize,
    "inval": _invalidate,
    "arrive": _arrive,
    "expect_tx": _expect,
}


def _mbarrier(machine: Machine, instruction: PtxInstruction) -> Handler:
    return _BY_NAME[instruction.parts[1]](machine, instruction)


def _fence(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`fence.mbarrier_init...` and `fence.proxy.async`; others have no effect in the emulator."""
    if "mbarrier_init" not in instruction.parts and "async" not in instruction.parts:
        return lambda lanes: None

    def run(lanes: Lanes) -> None:
        for slot in np.unique(machine.grid.slots[lanes]):
            machine.mbarriers.fence(int(slot))
        if "async" in instruction.parts:
            machine.clocks.fence(lanes)

    return run


MBARRIER: dict[str, Builder] = {"mbarrier": _mbarrier, "fence": _fence}
