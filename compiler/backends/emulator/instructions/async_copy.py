"""Asynchronous copies: of threads (`cp.async`) and of the copy engine (`cp.async.bulk`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from compiler.backends.emulator.counters import SECTOR_BYTES
from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.instructions.builder import Builder
from compiler.backends.emulator.instructions.mbarrier import barrier_at
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.operands import Source, parse_vector
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.tensor_copies import PIECE_BYTES, TensorMap
from compiler.backends.emulator.types import Array, Lanes, ptx_type

_U32, _S32, _U64, _PRED = (ptx_type(name) for name in ("u32", "s32", "u64", "pred"))
_UNKNOWN = 0xFF
_TENSOR = re.compile(r"\[\s*([^,\s]+)\s*,\s*(\{[^}]*\})\s*\]")


def _copy(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`cp.async.cg.shared.global [d], [s], size{, size of the source}`."""
    destination, source, text, *rest = instruction.operands
    size = int(text, 0)
    if size not in (4, 8, 16):
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    to, of = machine.operands.address(destination), machine.operands.address(source)
    used = _source_size(machine, size, rest)

    def run(lanes: Lanes) -> None:
        access = machine.shared_memory.resolve(LaneAccess(instruction, to(lanes), size, lanes))
        active = machine.grid.lanes[access.lanes]
        content = np.zeros((len(active), size), np.uint8)
        sizes = np.broadcast_to(used(active), active.shape)
        for number in np.unique(sizes[sizes > 0]):
            rows = np.flatnonzero(sizes == number)
            _fill(machine, instruction, of, (active, rows), content[:, :number])
        machine.copies.start(replace(access, lanes=active), content)

    return run


def _source_size(machine: Machine, size: int, rest: list[str]) -> Source:
    """Return how many bytes of the source each lane copies; the others become 0."""
    if not rest:
        return lambda lanes: size
    register = machine.operands.registers.get(rest[0])
    if register is not None and register.dtype == np.bool_:  # The predicate ignores the source.
        return lambda lanes: np.where(register[lanes], 0, size)
    return machine.operands.source(rest[0], _U32)


def _fill(
    machine: Machine,
    instruction: PtxInstruction,
    address: Source,
    rows: tuple[Array, Array],
    content: Array,
) -> None:
    """Read the sources of some lanes from global memory."""
    active, chosen = rows
    memory, num_bytes = machine.global_memory, content.shape[1]
    # A part of a copy need not be aligned to its size.
    size = num_bytes if num_bytes in (4, 8, 16) else 1
    lanes = active[chosen]
    access = memory.resolve(LaneAccess(instruction, address(lanes), size, lanes))
    memory.read(access)
    legal = chosen[np.isin(lanes, machine.grid.lanes[access.lanes])]
    content[legal] = memory.data[access.offsets[:, None] + np.arange(num_bytes)]


def _wait_group(machine: Machine, instruction: PtxInstruction) -> Handler:
    number = int(instruction.operands[0], 0)
    return lambda lanes: machine.copies.wait(lanes, number)


def _wait_all(machine: Machine, instruction: PtxInstruction) -> Handler:
    del instruction
    return lambda lanes: machine.copies.wait(lanes, 0, all_copies=True)


def _commit(machine: Machine, instruction: PtxInstruction) -> Handler:
    del instruction
    return machine.copies.commit


def _value(source: Source, lane: int) -> int:
    value = source(np.array([lane]))
    return int(value[0]) if np.ndim(value) else int(value)


@dataclass(frozen=True, slots=True)
class _Box:
    """The operand `[map, {x, y}]` of a copy of a tensor."""

    machine: Machine
    tensor: Source
    corner: tuple[Source, ...]

    @staticmethod
    def of(machine: Machine, operand: str) -> _Box:
        match = _TENSOR.fullmatch(operand)
        assert match is not None
        operands = machine.operands
        return _Box(
            machine,
            operands.source(match[1], _U64),
            tuple(operands.source(text, _S32) for text in reversed(parse_vector(match[2]))),
        )

    def at(
        self, instruction: PtxInstruction, lane: int, is_read: bool
    ) -> tuple[TensorMap, Array, tuple[int, ...]]:
        """Return the map, the bytes of its tensor, and the first element of the box."""
        launched = self.machine.launch.tensor_maps.get(_value(self.tensor, lane))
        if launched is None:
            self.machine.faults.stop(
                FaultKind.INVALID_OPERAND,
                instruction,
                np.array([lane]),
                "the address is not that of a tensor map among the parameters",
            )
        assert launched is not None
        tensor, start = launched
        corner = tuple(_value(source, lane) for source in self.corner)
        memory = self.machine.global_memory
        memory.transfer(start, tensor.sectors(corner, SECTOR_BYTES), is_read)
        return tensor, memory.data[start : start + tensor.tensor.nbytes], corner


def _pieces(
    machine: Machine, instruction: PtxInstruction, tensor: TensorMap, address: int, lane: int
) -> LaneAccess:
    """Return the access of a lane to a box in shared memory, by pieces of 16 bytes."""
    if address % tensor.alignment:
        machine.faults.stop(
            FaultKind.MISALIGNED,
            instruction,
            np.array([lane]),
            f"a box with a swizzle of {tensor.swizzle} lies at byte {address} of the shared "
            f"memory, which is no multiple of {tensor.alignment}",
        )
    pieces = tensor.pieces(address)
    access = LaneAccess(instruction, pieces, PIECE_BYTES, np.full(len(pieces), lane))
    return machine.shared_memory.resolve(access)


def _load_box(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`cp.async.bulk.tensor.2d.shared::cluster.global... [d], [map, {x, y}], [mbarrier]`."""
    destination, operand, signal = instruction.operands[:3]
    box = _Box.of(machine, operand)
    to, barrier = machine.operands.address(destination), machine.operands.address(signal)

    def run(lanes: Lanes) -> None:
        for lane in machine.grid.lanes[lanes].tolist():
            tensor, content, corner = box.at(instruction, lane, is_read=True)
            access = _pieces(machine, instruction, tensor, _value(to, lane), lane)
            data = tensor.take(content, corner).reshape(-1, PIECE_BYTES)[: len(access.offsets)]
            _start(machine, access, data, _value(barrier, lane))

    return run


def _load_bytes(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`cp.async.bulk.shared::cluster.global... [d], [s], size, [mbarrier]`."""
    destination, source, size, signal = instruction.operands[:4]
    to, of = machine.operands.address(destination), machine.operands.address(source)
    count, barrier = machine.operands.source(size, _U32), machine.operands.address(signal)

    def run(lanes: Lanes) -> None:
        for lane in machine.grid.lanes[lanes].tolist():
            steps = PIECE_BYTES * np.arange(_value(count, lane) // PIECE_BYTES)
            owners = np.full(len(steps), lane)
            access = LaneAccess(instruction, _value(to, lane) + steps, PIECE_BYTES, owners)
            write = machine.shared_memory.resolve(access)
            memory = machine.global_memory
            read = memory.resolve(replace(access, offsets=_value(of, lane) + steps))
            memory.read(read)
            data = memory.data[read.offsets[:, None] + np.arange(PIECE_BYTES)]
            write = replace(write, offsets=write.offsets[: len(data)], lanes=read.lanes)
            _start(machine, write, data, _value(barrier, lane))

    return run


def _start(machine: Machine, access: LaneAccess, data: Array, address: int) -> None:
    """Start a copy of pieces of 16 bytes that signals an mbarrier at its end."""
    owners = machine.grid.lanes[access.lanes]
    memory, lane = machine.shared_memory, int(owners[0])
    barrier = barrier_at(machine, access.instruction, lane, int(machine.grid.slots[lane]), address)
    if not barrier.is_fenced:
        machine.faults.report(
            FaultKind.MISSING_FENCE,
            access.instruction,
            owners[:1],
            "no fence.mbarrier_init or fence.proxy.async follows the initialization of the "
            "mbarrier that the copy engine signals",
        )
    shadow = memory.shadow
    assert shadow is not None
    shadow.begin_write_by_engine(access)
    index = access.offsets[:, None] + np.arange(PIECE_BYTES)
    memory.data[index] = _UNKNOWN
    row = machine.clocks.release(lane)

    def complete() -> None:
        memory.data[index] = data
        shadow.end_write(access)
        barrier.transferred(data.size, row)

    machine.tensor_copies.start(complete)


def _store_box(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {x, y}], [s]`."""
    operand, source = instruction.operands[:2]
    box, of = _Box.of(machine, operand), machine.operands.address(source)

    def run(lanes: Lanes) -> None:
        for lane in machine.grid.lanes[lanes].tolist():
            tensor, content, corner = box.at(instruction, lane, is_read=False)
            access = _pieces(machine, instruction, tensor, _value(of, lane), lane)

            def complete(
                tensor: TensorMap = tensor,
                content: Array = content,
                corner: tuple[int, ...] = corner,
                access: LaneAccess = access,
            ) -> None:
                memory = machine.shared_memory
                assert memory.shadow is not None
                memory.shadow.read_by_engine(access)
                pieces = access.offsets[:, None] + np.arange(PIECE_BYTES)
                tensor.put(content, corner, memory.data[pieces])

            machine.bulk_stores.start(lane, complete)

    return run


def _commit_stores(machine: Machine, instruction: PtxInstruction) -> Handler:
    del instruction

    def run(lanes: Lanes) -> None:
        for lane in machine.grid.lanes[lanes].tolist():
            machine.bulk_stores.commit(lane)

    return run


def _wait_stores(machine: Machine, instruction: PtxInstruction) -> Handler:
    number = int(instruction.operands[0], 0)

    def run(lanes: Lanes) -> None:
        for lane in machine.grid.lanes[lanes].tolist():
            machine.bulk_stores.wait(lane, number)

    return run


def _asynchronous(machine: Machine, instruction: PtxInstruction) -> Handler:
    builder = _builder(instruction.parts)
    if builder is None or "multicast::cluster" in instruction.parts:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    return builder(machine, instruction)


def _builder(parts: tuple[str, ...]) -> Builder | None:
    if "bulk" not in parts:
        steps: dict[str, Builder] = {
            "commit_group": _commit,
            "wait_group": _wait_group,
            "wait_all": _wait_all,
            "ca": _copy,
            "cg": _copy,
        }
        return steps.get(parts[2])
    if parts[3] in ("commit_group", "wait_group"):
        return _commit_stores if parts[3] == "commit_group" else _wait_stores
    loads = "global" in parts and parts.index("global") > 3 and "bulk_group" not in parts
    if "tensor" not in parts:
        return _load_bytes if loads else None
    return _load_box if loads else _store_box


ASYNC_COPY: dict[str, Builder] = {"cp": _asynchronous}
