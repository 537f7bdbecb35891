"""Tensor cores of a warp: `ldmatrix`, `stmatrix` and `mma.sync`.

Lane l holds, with g = l / 4 and t = l % 4 and e elements in a register of 32 bits:
    A, register r: row g + 8 * (r % 2), columns t * e + 4 * e * (r / 2) and the next e - 1
    B, register r: rows t * e + 4 * e * r and the next e - 1, column g
    C and D, element i: row g + 8 * (i / 2), column 2 * t + i % 2
(PTX ISA, "Matrix fragments for mma".)
"""

from __future__ import annotations

import re

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.instructions.builder import Builder
from compiler.backends.emulator.instructions.memory_access import accesses
from compiler.backends.emulator.instructions.warp import full_warps
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.operands import parse_vector
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, Lanes, PtxType, ptx_type, types_of

_B32 = ptx_type("b32")
_LANE = np.arange(32)
_GROUP, _THREAD = _LANE // 4, _LANE % 4
_ROW_BYTES = 16
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


def _matrices(machine: Machine, instruction: PtxInstruction) -> Handler:
    """Move matrices of 8 rows of 16 bytes; lanes 8 i to 8 i + 7 have the addresses of matrix i."""
    loads = instruction.opcode == "ldmatrix"
    if instruction.parts[-1] != "b16" or "m8n8" not in instruction.parts:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    registers, address = instruction.operands if loads else instruction.operands[::-1]
    views = [
        machine.operands.registers[name].view(np.uint16).reshape(-1, 2)
        for name in parse_vector(registers)
    ]
    find = accesses(machine, instruction, address, _ROW_BYTES)
    transposes = "trans" in instruction.parts
    columns = 2 * _THREAD[:, None] + np.arange(2)

    def run(lanes: Lanes) -> None:
        table = full_warps(machine, instruction, lanes)
        for number, view in enumerate(views):
            rows = table[:, 8 * number : 8 * number + 8].reshape(-1)
            for memory, access in find(rows):
                if len(access.offsets) < len(rows):
                    continue  # The fault is reported.
                elements = memory.elements(2)
                index = (access.offsets[:, None] >> 1) + np.arange(8)
                if loads:
                    memory.read(access)
                    matrix = elements[index].reshape(-1, 8, 8)
                    if transposes:
                        matrix = matrix.transpose(0, 2, 1)
                    view[table] = matrix[:, _GROUP[:, None], columns]
                else:
                    memory.write(access)
                    matrix = np.empty((len(table), 8, 8), np.uint16)
                    matrix[:, _GROUP[:, None], columns] = view[table]
                    if transposes:
                        matrix = matrix.transpose(0, 2, 1)
                    elements[index] = matrix.reshape(-1, 8)

    return run


def _product(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d, a, b, c`."""
    shape = next((m for part in instruction.parts if (m := _SHAPE.fullmatch(part))), None)
    kinds = types_of(instruction.parts)
    if shape is None or shape[1] != "16" or shape[2] != "8" or len(kinds) != 4:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    depth = int(shape[3])
    to, left, right, addend = kinds
    registers = [
        [machine.operands.registers[name] for name in parse_vector(operand)]
        for operand in instruction.operands
    ]
    if left.dtype.itemsize * depth * 16 != 128 * len(registers[1]):
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    saturates = "satfinite" in instruction.parts

    def run(lanes: Lanes) -> None:
        table = full_warps(machine, instruction, lanes)
        a = _fragment(registers[1], left, table, (16, depth))
        b = _fragment(registers[2], right, table, (8, depth))
        c = _accumulator(registers[3], addend, table)
        total = multiply_accumulate(a, b.transpose(0, 2, 1), c, saturates)
        _set_accumulator(registers[0], to, table, total)

    return run


def multiply_accumulate(a: Array, b: Array, c: Array, saturates: bool = False) -> Array:
    """Return a @ b + c in float32; in int32 for integers, with wrap-around or saturation."""
    if a.dtype.kind not in "iu":
        return a.astype(np.float32) @ b.astype(np.float32) + c.astype(np.float32)
    # Products of bytes are exact in float64, and its matrix product is faster.
    total = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64) + c
    if saturates:
        limits = np.iinfo(np.int32)
        total = np.clip(total, limits.min, limits.max)
    return total.astype(np.int32)


def _fragment(registers: list[Array], kind: PtxType, table: Array, shape: tuple[int, int]) -> Array:
    """Return matrices of (rows, depth): A, or B transposed."""
    size = 4 // kind.dtype.itemsize
    matrix = np.empty((len(table), *shape), kind.dtype)
    tall = shape[0] == 16
    for number, register in enumerate(registers):
        values = register.view(kind.dtype).reshape(-1, size)[table]
        row = _GROUP + (8 * (number % 2) if tall else 0)
        step = number // 2 if tall else number
        column = _THREAD[:, None] * size + np.arange(size) + 4 * size * step
        matrix[:, row[:, None], column] = values
    return matrix


def _accumulator(registers: list[Array], kind: PtxType, table: Array) -> Array:
    matrix = np.empty((len(table), 16, 8), kind.dtype)
    for register, position in _accumulator_positions(registers, kind):
        matrix[(slice(None), *position)] = register[table]
    return matrix


def _set_accumulator(registers: list[Array], kind: PtxType, table: Array, matrix: Array) -> None:
    for register, position in _accumulator_positions(registers, kind):
        register[table] = matrix[(slice(None), *position)]


def _accumulator_positions(
    registers: list[Array], kind: PtxType
) -> list[tuple[Array, tuple[Array, Array]]]:
    """Return each register as elements, with the rows and columns of the elements."""
    size = 4 // kind.dtype.itemsize
    positions = []
    for number, register in enumerate(registers):
        first = number * size
        view = register.view(kind.dtype).reshape(-1, size)
        row = (_GROUP + 8 * (first // 2))[:, None]
        column = 2 * _THREAD[:, None] + first % 2 + np.arange(size)
        positions.append((view, (row, column)))
    return positions


TENSOR_CORES: dict[str, Builder] = {"ldmatrix": _matrices, "stmatrix": _matrices, "mma": _product}
