"""Integer arithmetic: with wrap-around, wide products, carries, bits and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.backends.emulator.instructions.builder import (
    Builder,
    elementwise,
    last_type,
    uniform,
)
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import PtxInstruction
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


def _add(machine: Machine, instruction: PtxInstruction) -> Handler:
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


def _multiply(machine: Machine, instruction: PtxInstruction) -> Handler:
    if "wide" in instruction.parts:
        return _wide(machine, instruction)
    if "hi" in instruction.parts:
        return uniform(machine, instruction, multiply_high)
    return uniform(machine, instruction, np.multiply)


def _multiply_add(machine: Machine, instruction: PtxInstruction) -> Handler:
    if "cc" in instruction.parts or instruction.opcode == "madc":
        return _with_carry(machine, instruction)
    if "wide" in instruction.parts:
        return _wide(machine, instruction)
    if "hi" in instruction.parts:
        return uniform(machine, instruction, lambda a, b, c: multiply_high(a, b) + c)
    return uniform(machine, instruction, lambda a, b, c: a * b + c)


def _wide(machine: Machine, instruction: PtxInstruction) -> Handler:
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


def _with_carry(machine: Machine, instruction: PtxInstruction) -> Handler:
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


def _dot_product(machine: Machine, instruction: PtxInstruction) -> Handler:
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


def _sum_of_difference(machine: Machine, instruction: PtxInstruction) -> Handler:
    return uniform(
        machine, instruction, lambda a, b, c: np.where(a < b, b - a, a - b).astype(c.dtype) + c
    )


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

DOT_PRODUCTS: dict[str, Builder] = {"dp2a": _dot_product, "dp4a": _dot_product}
"""Products of bytes."""
