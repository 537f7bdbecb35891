"""Instructions on bits and bytes: shifts, fields, permutations, counts, logic."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.instructions.builder import (
    Builder,
    Operation,
    elementwise,
    last_type,
    uniform,
)
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, PtxType, ptx_type

_U32 = ptx_type("u32")


def _shift(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind = last_type(instruction)
    operands = machine.operands
    bits = 8 * kind.num_bytes
    if instruction.opcode == "shl":
        kind = ptx_type(f"u{bits}")
    function = np.left_shift if instruction.opcode == "shl" else np.right_shift
    # A shift by the width or more leaves no bit; a signed one to the right leaves the sign.
    limit = bits - 1 if kind.is_signed else None

    def operation(value: Array, amount: Array) -> Array:
        clamped = np.minimum(amount, np.uint32(bits - 1))
        shifted = function(value, clamped.astype(value.dtype))
        if limit is not None:
            return shifted
        return np.where(amount >= bits, value.dtype.type(0), shifted)

    target, value, amount = instruction.operands
    return elementwise(
        operands.target(target, kind),
        operation,
        operands.source(value, kind),
        operands.source(amount, _U32),
    )


def _funnel_shift(machine: Machine, instruction: PtxInstruction) -> Handler:
    wraps, left = "wrap" in instruction.parts, "l" in instruction.parts

    def operation(low: Array, high: Array, amount: Array) -> Array:
        amount = amount & np.uint32(31) if wraps else np.minimum(amount, np.uint32(32))
        both = (np.asarray(high).astype(np.uint64) << np.uint64(32)) | np.asarray(low).astype(
            np.uint64
        )
        count = np.asarray(amount).astype(np.uint64)
        shifted = (both << count) >> np.uint64(32) if left else both >> count
        return (shifted & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    operands = machine.operands
    target, *sources = instruction.operands
    return elementwise(
        operands.target(target, _U32), operation, *[operands.source(text, _U32) for text in sources]
    )


def _extract_bits(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind = last_type(instruction)
    bits = 8 * kind.num_bytes

    def operation(value: Array, position: Array, length: Array) -> Array:
        raw = np.asarray(value).astype(np.int64 if kind.is_signed else np.uint64)
        start = np.minimum(position & np.uint32(255), np.uint32(bits - 1)).astype(raw.dtype)
        count = np.minimum(length & np.uint32(255), np.uint32(bits)).astype(np.int64)
        if kind.is_signed:
            count = np.minimum(count, bits - start.astype(np.int64))
        spare = np.clip(64 - count, 0, 63).astype(raw.dtype)
        field = ((raw >> start) << spare) >> spare
        return np.where(count == 0, raw.dtype.type(0), field)

    return _bit_field(machine, instruction, kind, operation)


def _insert_bits(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind = ptx_type(f"u{8 * last_type(instruction).num_bytes}")
    bits = 8 * kind.num_bytes

    def operation(value: Array, into: Array, position: Array, length: Array) -> Array:
        start = np.asarray(position & np.uint32(255)).astype(np.uint64)
        count = np.asarray(length & np.uint32(255)).astype(np.uint64)
        ones = np.where(
            count >= 64,
            ~np.uint64(0),
            (np.uint64(1) << np.minimum(count, np.uint64(63))) - np.uint64(1),
        )
        safe = np.minimum(start, np.uint64(63))
        mask = np.where(start < bits, ones << safe, np.uint64(0))
        wide = np.asarray(value).astype(np.uint64) << safe
        return (np.asarray(into).astype(np.uint64) & ~mask) | (wide & mask)

    return _bit_field(machine, instruction, kind, operation)


def _bit_field(
    machine: Machine, instruction: PtxInstruction, kind: PtxType, operation: Operation
) -> Handler:
    operands = machine.operands
    target, *rest = instruction.operands
    values, amounts = rest[:-2], rest[-2:]
    sources = [operands.source(text, kind) for text in values]
    sources += [operands.source(text, _U32) for text in amounts]
    # The fields are computed in 64 bits.
    return elementwise(
        operands.target(target, kind), lambda *v: operation(*v).astype(kind.dtype), *sources
    )


def _permute_bytes(machine: Machine, instruction: PtxInstruction) -> Handler:
    mode = instruction.parts[-1] if len(instruction.parts) > 2 else None
    if mode is not None:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)

    def operation(low: Array, high: Array, selector: Array) -> Array:
        both = (np.asarray(high).astype(np.uint64) << np.uint64(32)) | np.asarray(low).astype(
            np.uint64
        )
        result: Any = np.uint64(0)
        for byte in range(4):
            choice = (np.asarray(selector) >> np.uint32(4 * byte)).astype(np.uint64)
            value = (both >> ((choice & np.uint64(7)) * np.uint64(8))) & np.uint64(0xFF)
            # Bit 3 of a selector copies the sign of the byte to all of its bits.
            sign = np.where(value & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
            value = np.where(choice & np.uint64(8), sign, value)
            result = result | (value << np.uint64(8 * byte))
        return np.asarray(result).astype(np.uint32)

    operands = machine.operands
    target, *sources = instruction.operands
    return elementwise(
        operands.target(target, _U32), operation, *[operands.source(text, _U32) for text in sources]
    )


def _count_bits(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind = last_type(instruction)
    unsigned = ptx_type(f"u{8 * kind.num_bytes}")
    operation: Operation = np.bitwise_count
    if instruction.opcode == "clz":

        def operation(value: Array) -> Array:
            return _leading_zeros(value, 8 * kind.num_bytes)

    operands = machine.operands
    target, source = instruction.operands
    return elementwise(operands.target(target, _U32), operation, operands.source(source, unsigned))


def _leading_zeros(value: Array, bits: int) -> Array:
    return np.uint32(bits) - _bit_length(value)


def _bit_length(value: Array) -> Array:
    """Return the number of bits up to the highest one that is set."""
    value = np.asarray(value).copy()
    shift = 1
    while shift < 8 * value.dtype.itemsize:
        value |= value >> value.dtype.type(shift)
        shift *= 2
    return np.bitwise_count(value).astype(np.uint32)


def _reverse_bits(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind = ptx_type(f"u{8 * last_type(instruction).num_bytes}")

    def operation(value: Array) -> Array:
        value = np.asarray(value)
        octets = value.astype(value.dtype.newbyteorder(">")).reshape(-1, 1).view(np.uint8)
        bits = np.unpackbits(octets.reshape(-1, kind.num_bytes), axis=1)[:, ::-1]
        packed = np.packbits(bits, axis=1)
        return packed.view(value.dtype.newbyteorder(">")).reshape(value.shape)

    operands = machine.operands
    target, source = instruction.operands
    return elementwise(operands.target(target, kind), operation, operands.source(source, kind))


def _find_bit(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind = last_type(instruction)
    bits = 8 * kind.num_bytes
    is_shift = "shiftamt" in instruction.parts

    def operation(value: Array) -> Array:
        value = np.asarray(value)
        if kind.is_signed:
            value = np.where(value < 0, ~value, value)
        length = _bit_length(value.view(f"u{kind.num_bytes}"))
        position = np.uint32(bits) - length if is_shift else length - np.uint32(1)
        return np.where(length == 0, np.uint32(0xFFFFFFFF), position)

    operands = machine.operands
    target, source = instruction.operands
    return elementwise(operands.target(target, _U32), operation, operands.source(source, kind))


def _logic3(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`lop3.b32 d, a, b, c, table`: bit (a, b, c) of the table."""
    table = int(instruction.operands[4], 0)

    def operation(a: Array, b: Array, c: Array) -> Array:
        result: Any = np.uint32(0)
        for number in range(8):
            if table >> number & 1:
                term = (a if number & 4 else ~a) & (b if number & 2 else ~b)
                result = result | (term & (c if number & 1 else ~c))
        return result + np.zeros_like(a)

    operands = machine.operands
    target, *sources = instruction.operands[:4]
    return elementwise(
        operands.target(target, _U32), operation, *[operands.source(text, _U32) for text in sources]
    )


_BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _bitwise(machine: Machine, instruction: PtxInstruction) -> Handler:
    return uniform(machine, instruction, _BITWISE[instruction.opcode])


def _invert(machine: Machine, instruction: PtxInstruction) -> Handler:
    return uniform(machine, instruction, np.invert)


BITS: dict[str, Builder] = {
    "and": _bitwise,
    "or": _bitwise,
    "xor": _bitwise,
    "not": _invert,
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel_shift,
    "bfe": _extract_bits,
    "bfi": _insert_bits,
    "prmt": _permute_bytes,
    "popc": _count_bits,
    "clz": _count_bits,
    "brev": _reverse_bits,
    "bfind": _find_bit,
    "lop3": _logic3,
}
"""Instructions on bits and bytes."""
