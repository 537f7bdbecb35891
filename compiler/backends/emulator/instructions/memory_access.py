"""Loads, stores and atomic operations, in each memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.instructions.builder import Builder, Operation, last_type
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.memory import (
    LOCAL_WINDOW,
    SHARED_WINDOW,
    WINDOW_BITS,
    Memory,
)
from compiler.backends.emulator.operands import Source, parse_address, parse_vector
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, Lanes, PtxType, unsigned

Accesses: TypeAlias = Callable[[Lanes], Iterator[tuple[Memory, LaneAccess]]]
"""Yields the memories that the active lanes access, and the access to each."""

_SHARED = ("shared", "shared::cta", "shared::cluster")


def accesses(
    machine: Machine,
    instruction: PtxInstruction,
    operand: str,
    num_bytes: int,
    *,
    is_atomic: bool = False,
) -> Accesses:
    """Return the checked accesses of an operand in brackets."""

    def at(addresses: Array, lanes: Lanes) -> LaneAccess:
        return LaneAccess(instruction, addresses, num_bytes, lanes, is_atomic)

    address = machine.operands.address(operand)
    memory = _memory(machine, instruction, operand)
    if memory is None:
        return _generic(machine, address, at)

    def run(lanes: Lanes) -> Iterator[tuple[Memory, LaneAccess]]:
        yield memory, memory.resolve(at(address(lanes), lanes))

    return run


def _memory(machine: Machine, instruction: PtxInstruction, operand: str) -> Memory | None:
    """Return the memory that an instruction names; None if addresses are generic."""
    parts = instruction.parts
    if any(part in _SHARED for part in parts):
        return machine.shared_memory
    if "global" in parts or "const" in parts:
        return machine.global_memory
    if "local" in parts or "param" in parts:
        return machine.local_memory
    base = parse_address(operand).base
    if base in machine.program.shared:
        return machine.shared_memory
    return None


def _generic(
    machine: Machine, address: Source, at: Callable[[Array, Lanes], LaneAccess]
) -> Accesses:
    memories = {
        SHARED_WINDOW >> WINDOW_BITS: machine.shared_memory,
        LOCAL_WINDOW >> WINDOW_BITS: machine.local_memory,
    }

    def run(lanes: Lanes) -> Iterator[tuple[Memory, LaneAccess]]:
        active = machine.grid.lanes[lanes]
        addresses = np.broadcast_to(address(lanes), active.shape)
        windows = addresses >> WINDOW_BITS
        for number in np.unique(windows):
            chosen = windows == number
            memory: Memory = memories.get(int(number), machine.global_memory)
            base = 0 if memory is machine.global_memory else memory.window
            yield memory, memory.resolve(at(addresses[chosen] - base, active[chosen]))

    return run


def _vector_length(instruction: PtxInstruction) -> int:
    return next((int(part[1]) for part in instruction.parts if part in ("v2", "v4", "v8")), 1)


def _load(machine: Machine, instruction: PtxInstruction) -> Handler:
    target, operand = instruction.operands[:2]
    base = parse_address(operand).base
    if "param" in instruction.parts and base in machine.program.parameters:
        return _load_parameter(machine, instruction)
    kind = last_type(instruction)
    size = kind.num_bytes
    shift = size.bit_length() - 1
    targets = [machine.operands.target(name, kind) for name in parse_vector(target)]
    num_bytes = size * len(targets)
    is_atomic = not {"volatile", "relaxed", "acquire"}.isdisjoint(instruction.parts)
    find = accesses(machine, instruction, operand, num_bytes, is_atomic=is_atomic)

    def run(lanes: Lanes) -> None:
        for memory, access in find(lanes):
            memory.read(access)
            elements, first = memory.elements(size), access.offsets >> shift
            for number, write in enumerate(targets):
                write(access.lanes, elements[first + number].view(kind.dtype))

    return run


def _load_parameter(machine: Machine, instruction: PtxInstruction) -> Handler:
    target, operand = instruction.operands
    kind = last_type(instruction)
    address = parse_address(operand)
    start = machine.program.parameters[address.base].offset + address.offset
    values = [
        (
            machine.operands.target(name, kind),
            _parameter_value(machine, kind, start + number * kind.num_bytes),
        )
        for number, name in enumerate(parse_vector(target))
    ]

    def run(lanes: Lanes) -> None:
        for write, value in values:
            write(lanes, value)

    return run


def _parameter_value(machine: Machine, kind: PtxType, start: int) -> Any:
    content = machine.launch.parameters[start : start + kind.num_bytes]
    return np.frombuffer(content, kind.dtype)[0]


def _store(machine: Machine, instruction: PtxInstruction) -> Handler:
    operand, value = instruction.operands[:2]
    kind = last_type(instruction)
    size = kind.num_bytes
    shift, bits = size.bit_length() - 1, unsigned(size)
    sources = [machine.operands.source(name, kind) for name in parse_vector(value)]
    num_bytes = size * len(sources)
    is_atomic = not {"relaxed", "release"}.isdisjoint(instruction.parts)
    find = accesses(machine, instruction, operand, num_bytes, is_atomic=is_atomic)

    def run(lanes: Lanes) -> None:
        for memory, access in find(lanes):
            memory.write(access)
            elements, first = memory.elements(size), access.offsets >> shift
            for number, source in enumerate(sources):
                elements[first + number] = source(access.lanes).view(bits)

    return run


def _increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_ATOMIC: dict[str, Operation] = {
    "add": np.add,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "inc": _increment,
    "dec": _decrement,
    "cas": lambda old, expected, new: np.where(old == expected, new, old),
}


def _atomic(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`atom` returns the old value, `red` does not; lanes with one address go one by one."""
    name = next((part for part in instruction.parts if part in _ATOMIC), None)
    if name is None or _vector_length(instruction) > 1:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    operation, kind = _ATOMIC[name], last_type(instruction)
    texts = list(instruction.operands)
    target = texts.pop(0) if instruction.opcode == "atom" else "_"
    write = machine.operands.target(target, kind)
    values = [machine.operands.source(text, kind) for text in texts[1:]]
    size = kind.num_bytes
    shift, bits = size.bit_length() - 1, unsigned(size)
    find = accesses(machine, instruction, texts[0], size, is_atomic=True)

    def view(elements: Array) -> Array:
        return elements.view(kind.dtype).reshape((len(elements), -1) if kind.count > 1 else -1)

    def run(lanes: Lanes) -> None:
        for memory, access in find(lanes):
            offsets, numbers = access.offsets, machine.grid.lanes[access.lanes]
            memory.write(access)
            elements = memory.elements(size)
            for turn in _turns(offsets):
                index, chosen = offsets[turn] >> shift, numbers[turn]
                old = view(elements[index])
                new = operation(old, *[value(chosen) for value in values])
                elements[index] = np.ascontiguousarray(new, kind.dtype).view(bits).reshape(-1)
                write(chosen, old)

    return run


def _turns(offsets: Array) -> Iterator[Array]:
    """Yield positions such that no turn has one offset twice, in the order of the lanes."""
    order = np.argsort(offsets, kind="stable")
    in_order = offsets[order]
    starts = np.flatnonzero(np.concatenate(([True], in_order[1:] != in_order[:-1])))
    lengths = np.diff(np.append(starts, len(offsets)))
    rank = np.arange(len(offsets)) - np.repeat(starts, lengths)
    for turn in range(int(lengths.max()) if len(lengths) else 0):
        yield order[rank == turn]


def _trap(machine: Machine, instruction: PtxInstruction) -> Handler:
    def run(lanes: Lanes) -> None:
        machine.faults.stop(
            FaultKind.TRAP, instruction, machine.grid.lanes[lanes], "the kernel stops itself"
        )

    return run


def no_operation(machine: Machine, instruction: PtxInstruction) -> Handler:
    """Return the handler of an instruction without an effect in the emulator."""
    del machine, instruction
    return lambda lanes: None


MEMORY: dict[str, Builder] = {
    "ld": _load,
    "ldu": _load,
    "st": _store,
    "atom": _atomic,
    "red": _atomic,
    "trap": _trap,
    "prefetch": no_operation,
    "prefetchu": no_operation,
    "applypriority": no_operation,
    "discard": no_operation,
    "createpolicy": no_operation,
    "membar": no_operation,
    "nanosleep": no_operation,
    "pmevent": no_operation,
    "griddepcontrol": no_operation,
}
