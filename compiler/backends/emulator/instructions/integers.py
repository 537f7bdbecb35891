"""Integer arithmetic: with wrap-around, wide products, carries, bits and bytes."""

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
from compiler.backends.emulator.program import Instruction
from compiler.backends.emulator.types import Array, Lanes, PtxType, ptx_type

_U32, _S32, _U8 = ptx_type("u32"), ptx_type("s32"), ptx_type("u8")
_CARRY = "%carry"


def divide(a: Array, b: Array) -> Array:
    """Return the quotient, rounded toward zero."""
    quotient = np.floor_divide(a, b)
    if quotient.dtype.kind == "u":
        return quotient
    rest = a - quotient * b
    return quotient + ((rest != 0) & ((a < 0) != (b < 0))).astype(quotient.dtype)


def multiply_high(a: Array, b: Array) -> Array:
    """Return the high half of a product."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.itemsize < 8:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        bits = wide(8 * a.dtype.itemsize)
        return (np.multiply(a, b, dtype=wide) >> bits).astype(a.dtype)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    low, middle = (x & mask) * (y & mask), (x >> half) * (y & mask)
    middle += low >> half
    other = (x & mask) * (y >> half) + (middle & mask)
    high = (x >> half) * (y >> half) + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.astype(a.dtype)


def saturate_add(a: Array, b: Array) -> Array:
    """Return a sum, clamped to the range of the type."""
    limits = np.iinfo(a.dtype)
    return np.clip(np.add(a, b, dtype=np.int64), limits.min, limits.max).astype(a.dtype)


def _add(machine: Machine, instruction: Instruction) -> Handler:
    name = instruction.opcode
    if "cc" in instruction.parts or name in ("addc", "subc"):
        return _with_carry(machine, instruction)
    if "sat" in instruction.parts:
        return uniform(
            machine,
            instruction,
            saturate_add if name == "add" else lambda a, b: saturate_add(a, -b),
        )
    return uniform(machine, instruction, np.add if name == "add" else np.subtract)


def _multiply(machine: Machine, instruction: Instruction) -> Handler:
    if "wide" in instruction.parts:
        return _wide(machine, instruction)
    if "hi" in instruction.parts:
        return uniform(machine, instruction, multiply_high)
    return uniform(machine, instruction, np.multiply)


def _multiply_add(machine: Machine, instruction: Instruction) -> Handler:
    if "cc" in instruction.parts or instruction.opcode == "madc":
        return _with_carry(machine, instruction)
    if "wide" in instruction.parts:
        return _wide(machine, instruction)
    if "hi" in instruction.parts:
        return uniform(machine, instruction, lambda a, b, c: multiply_high(a, b) + c)
    return uniform(machine, instruction, lambda a, b, c: a * b + c)


def _wide(machine: Machine, instruction: Instruction) -> Handler:
    """Return the handler of a product, or of a product and a sum, of twice the width."""
    kind = last_type(instruction)
    wide = ptx_type(kind.name[0] + str(16 * kind.num_bytes))
    operands = machine.operands
    target, left, right, *addend = instruction.operands
    sources = [operands.source(left, kind), operands.source(right, kind)]
    sources += [operands.source(text, wide) for text in addend]

    def operation(a: Array, b: Array, c: Any = None) -> Array:
        product = np.multiply(a, b, dtype=wide.dtype)
        return product if c is None else product + c

    return elementwise(operands.target(target, wide), operation, *sources)


def _with_carry(machine: Machine, instruction: Instruction) -> Handler:
    """Return the handler of an operation that reads or writes the carry of the thread."""
    kind = ptx_type(f"u{8 * last_type(instruction).num_bytes}")
    operands, name = machine.operands, instruction.opcode
    carry = operands.registers.setdefault(_CARRY, np.zeros(machine.grid.num_lanes, np.bool_))
    target = operands.target(instruction.operands[0], kind)
    sources = [operands.source(text, kind) for text in instruction.operands[1:]]
    reads, writes = name in ("addc", "subc", "madc"), "cc" in instruction.parts
    if name in ("mad", "madc"):
        signed = last_type(instruction)
        factors = [operands.source(text, signed) for text in instruction.operands[1:3]]
        high = "hi" in instruction.parts

        def product(lanes: Lanes) -> Array:
            a, b = (factor(lanes) for factor in factors)
            result = multiply_high(a, b) if high else a * b
            return np.asarray(result).view(kind.dtype)

        sources = [product, sources[2]]
    subtracts = name in ("sub", "subc")

    def run(lanes: Lanes) -> None:
        a, b = (source(lanes) for source in sources)
        carried = carry[lanes].astype(kind.dtype) if reads else kind.dtype.type(0)
        if subtracts:
            first = a - b
            result = first - carried
            out = (a < b) | (first < carried)
        else:
            first = a + b
            result = first + carried
            out = (first < a) | (result < first)
        target(lanes, result)
        if writes:
            carry[lanes] = out

    return run


def _shift(machine: Machine, instruction: Instruction) -> Handler:
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


def _funnel_shift(machine: Machine, instruction: Instruction) -> Handler:
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


def _extract_bits(machine: Machine, instruction: Instruction) -> Handler:
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


def _insert_bits(machine: Machine, instruction: Instruction) -> Handler:
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
    machine: Machine, instruction: Instruction, kind: PtxType, operation: Operation
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


def _permute_bytes(machine: Machine, instruction: Instruction) -> Handler:
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


def _count_bits(machine: Machine, instruction: Instruction) -> Handler:
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


def _reverse_bits(machine: Machine, instruction: Instruction) -> Handler:
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


def _find_bit(machine: Machine, instruction: Instruction) -> Handler:
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


def _logic3(machine: Machine, instruction: Instruction) -> Handler:
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


def _dot_product(machine: Machine, instruction: Instruction) -> Handler:
    """`dp4a`: the sum of four products of bytes, and an addend.

    `dp2a` multiplies two numbers of 16 bits with the lower or the upper two of four bytes.
    """
    left, right = instruction.parts[-2:]
    result = _S32 if "s32" in (left, right) else _U32
    is_wide = instruction.opcode == "dp4a"
    sizes = ("8", "8") if is_wide else ("16", "8")
    pair = [ptx_type(name[0] + size) for name, size in zip((left, right), sizes, strict=True)]
    bytes_used = slice(2, 4) if "hi" in instruction.parts else slice(0, 4 if is_wide else 2)
    operands = machine.operands
    target, a, b, c = instruction.operands
    vectors = [
        operands.source(text, PtxType(kind.name, kind.dtype, 4 // kind.num_bytes))
        for text, kind in zip((a, b), pair, strict=True)
    ]

    def operation(x: Array, y: Array, addend: Array) -> Array:
        products = x.astype(np.int64) * y[..., bytes_used].astype(np.int64)
        return (products.sum(axis=-1) + addend.astype(np.int64)).astype(result.dtype)

    return elementwise(
        operands.target(target, result), operation, *vectors, operands.source(c, result)
    )


def _sum_of_difference(machine: Machine, instruction: Instruction) -> Handler:
    return uniform(
        machine, instruction, lambda a, b, c: np.where(a < b, b - a, a - b).astype(c.dtype) + c
    )


_BITWISE = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def _bitwise(machine: Machine, instruction: Instruction) -> Handler:
    return uniform(machine, instruction, _BITWISE[instruction.opcode])


def _invert(machine: Machine, instruction: Instruction) -> Handler:
    return uniform(machine, instruction, np.invert)


INTEGER: dict[str, Builder] = {
    "add": _add,
    "addc": _add,
    "sub": _add,
    "subc": _add,
    "mul": _multiply,
    "mul24": _multiply,
    "mad": _multiply_add,
    "madc": _multiply_add,
    "div": lambda machine, instruction: uniform(machine, instruction, divide),
    "rem": lambda machine, instruction: uniform(machine, instruction, np.fmod),
    "min": lambda machine, instruction: uniform(machine, instruction, np.minimum),
    "max": lambda machine, instruction: uniform(machine, instruction, np.maximum),
    "abs": lambda machine, instruction: uniform(machine, instruction, np.abs),
    "neg": lambda machine, instruction: uniform(machine, instruction, np.negative),
    "sad": _sum_of_difference,
}
"""Instructions that exist for floating-point types too."""

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
    "dp2a": _dot_product,
    "dp4a": _dot_product,
}
"""Instructions on bits and bytes."""
