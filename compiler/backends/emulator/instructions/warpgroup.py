"""Warpgroups: their registers, and products on tensor cores (`wgmma`) of operands in shared memory.

A descriptor holds addresses in units of 16 bytes: the start in bits 0 to 13, the leading and the
stride offset in bits 16 to 29 and 32 to 45, and the swizzle in bits 62 and 63 (PTX ISA, "Matrix
descriptor format").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.faults import FaultKind
from compiler.backends.emulator.instructions.builder import Builder
from compiler.backends.emulator.instructions.tensor_cores import multiply_accumulate
from compiler.backends.emulator.instructions.warp import full_warps
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.operands import Source, parse_vector
from compiler.backends.emulator.products import Accumulator
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.tensor_copies import PIECE_BYTES, swizzled
from compiler.backends.emulator.types import Array, Lanes, PtxType, ptx_type, types_of

_U64, _PRED = ptx_type("u64"), ptx_type("pred")
_SIZE = 128
_REGISTER_UNIT, _REGISTER_RANGE = 8, range(24, 257)
_SHAPE = re.compile(r"m64n(\d+)k(\d+)")
_SWIZZLES = (0, 128, 64, 32)
_LANE = np.arange(_SIZE)
_ROW, _COLUMN = 16 * (_LANE // 32) + _LANE % 32 // 4, 2 * (_LANE % 4)


def _warpgroups(machine: Machine, instruction: PtxInstruction, lanes: Lanes) -> list[int]:
    """Return the first lane of each warpgroup; a part of one is a fault."""
    table = full_warps(machine, instruction, lanes)
    threads = machine.grid.threads[table[:, 0]]
    firsts = table[threads % _SIZE == 0, 0]
    if 4 * len(firsts) != len(table):
        machine.faults.stop(
            FaultKind.DIVERGENT_WARP,
            instruction,
            table[:, 0],
            "not all four warps of the warpgroup run this instruction together",
        )
    return [int(lane) for lane in firsts]


def _product(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`wgmma.mma_async... {d}, a, b, scale-d, scale-a, scale-b{, transpose-a, transpose-b}`."""
    shape = next((m for part in instruction.parts if (m := _SHAPE.fullmatch(part))), None)
    to, left, right = types_of(instruction.parts)
    if shape is None or to.dtype.itemsize != 4:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    width, depth = int(shape[1]), int(shape[2])
    target, a_text, b_text, scale, *rest = instruction.operands
    immediates = [int(text, 0) for text in rest]
    # Floating-point products have two signs; 16-bit ones also say which operand is transposed.
    sign = float(np.prod(immediates[:2])) if to.is_float else 1.0
    transposes = immediates[2:] if left.dtype.itemsize == 2 and left.name != "tf32" else []
    names = parse_vector(target)
    keeps = machine.operands.source(scale, _PRED)
    b_matrix = _SharedMatrix(
        machine, instruction, right, (width, depth), bool(transposes and transposes[-1])
    ).reader(b_text)
    if a_text.startswith("{"):
        a_matrix = _register_matrix(machine, a_text, left, depth)
    else:
        a_matrix = _SharedMatrix(
            machine, instruction, left, (64, depth), bool(transposes and transposes[0])
        ).reader(a_text)

    def start(first: int) -> None:
        one = np.array([first])
        accumulates = np.broadcast_to(keeps(one), (1,))[0]
        a, b = a_matrix(first), b_matrix(first)

        def step(values: Array) -> Array:
            addend = values if accumulates else np.zeros_like(values)
            return multiply_accumulate(a() * left.dtype.type(sign), b().T, addend)

        if machine.products.needs_fence((first, names)):
            machine.faults.report(
                FaultKind.MISSING_FENCE,
                instruction,
                one,
                "no wgmma.fence orders the accesses of the accumulators before the product",
            )
        machine.products.start(
            (first, names), lambda: _take_accumulator(machine, names, to, first, width), step
        )

    def run(lanes: Lanes) -> None:
        for first in _warpgroups(machine, instruction, lanes):
            start(first)

    return run


def _take_accumulator(
    machine: Machine, names: tuple[str, ...], kind: PtxType, first: int, width: int
) -> Accumulator:
    """Move the accumulator out of its registers, which hold NaN until the product is complete."""
    registers = [machine.operands.registers[name].view(kind.dtype) for name in names]
    lanes = first + _LANE
    values = np.empty((64, width), kind.dtype)

    def positions() -> list[tuple[Array, tuple[Array, Array]]]:
        return [
            (register, (_ROW + 8 * (number % 4 // 2), _COLUMN + number % 2 + 8 * (number // 4)))
            for number, register in enumerate(registers)
        ]

    for register, position in positions():
        values[position] = register[lanes]
        register.view(np.uint32)[lanes] = 0xFFFFFFFF

    def write_back(result: Array) -> None:
        for register, position in positions():
            register[lanes] = result[position]

    return Accumulator(values, write_back)


def _register_matrix(
    machine: Machine, operand: str, kind: PtxType, depth: int
) -> Callable[[int], Callable[[], Array]]:
    """Return the reader of A in registers, whose values are those at the start of the product."""
    size = 4 // kind.dtype.itemsize
    views = [
        machine.operands.registers[name].view(kind.dtype).reshape(-1, size)
        for name in parse_vector(operand)
    ]

    def at(first: int) -> Callable[[], Array]:
        matrix = np.empty((64, depth), kind.dtype)
        for number, view in enumerate(views):
            row = _ROW + 8 * (number % 2)
            column = _LANE[:, None] % 4 * size + np.arange(size) + 4 * size * (number // 2)
            matrix[row[:, None], column] = view[first + _LANE]
        return lambda: matrix

    return at


@dataclass(frozen=True, slots=True)
class _SharedMatrix:
    """A matrix (rows, depth) in shared memory that an instruction names by a descriptor."""

    machine: Machine
    instruction: PtxInstruction
    kind: PtxType
    shape: tuple[int, int]
    is_transposed: bool

    def reader(self, operand: str) -> Callable[[int], Callable[[], Array]]:
        """Return what takes the descriptor of a warpgroup at the start, and reads at the end."""
        source: Source = self.machine.operands.source(operand, _U64)
        item = self.kind.dtype.itemsize
        row, column = (index.reshape(-1) for index in np.indices(self.shape))

        def at(first: int) -> Callable[[], Array]:
            value = int(np.broadcast_to(source(np.array([first])), (1,))[0])
            places = descriptor_addresses(value, row, column * item, item, self.is_transposed)
            return lambda: self._read(places, first)

        return at

    def _read(self, places: Array, first: int) -> Array:
        memory, kind = self.machine.shared_memory, self.kind
        pieces = np.unique(places // PIECE_BYTES) * PIECE_BYTES
        lanes = np.full(len(pieces), first)
        access = memory.resolve(LaneAccess(self.instruction, pieces, PIECE_BYTES, lanes))
        if len(access.offsets) < len(pieces):
            return np.zeros(self.shape, kind.dtype)
        assert memory.shadow is not None
        memory.shadow.read_by_engine(access)
        item = kind.dtype.itemsize
        index = (places + memory.bases[first]) // item
        return memory.elements(item)[index].view(kind.dtype).reshape(self.shape)


def descriptor_addresses(
    descriptor: int, row: Array, column: Array, item: int, is_transposed: bool
) -> Array:
    """Return the addresses in shared memory of elements of a matrix.

    Args:
        descriptor: The matrix descriptor.
        row: The row of each element: along m or n.
        column: The position of each element along k, in bytes.
        item: The size of an element.
        is_transposed: Whether m or n is contiguous in memory instead of k.
    """
    start = (descriptor & 0x3FFF) << 4
    leading = (descriptor >> 16 & 0x3FFF) << 4
    stride = (descriptor >> 32 & 0x3FFF) << 4
    swizzle = _SWIZZLES[descriptor >> 62]
    width = swizzle or PIECE_BYTES
    if is_transposed:
        inner, depth = row * item, column // item
        plain = start + inner // width * leading + depth // 8 * stride
        plain = plain + depth % 8 * width + inner % width
    else:
        plain = start + row // 8 * stride + row % 8 * width
        # Without a swizzle a row of 8 pieces is split: the leading offset is between pieces.
        plain = plain + (column if swizzle else column // width * leading + column % width)
    return swizzled(plain, swizzle)


def _groups(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`wgmma.fence`, `wgmma.commit_group` and `wgmma.wait_group`."""
    name, products = instruction.parts[1], machine.products
    number = int(instruction.operands[0], 0) if name == "wait_group" else 0
    actions: dict[str, Callable[[int], None]] = {
        "fence": products.fence,
        "commit_group": products.groups.commit,
        "wait_group": lambda first: products.wait(first, number),
    }
    action = actions[name]

    def run(lanes: Lanes) -> None:
        for first in _warpgroups(machine, instruction, lanes):
            action(first)

    return run


def _warpgroup(machine: Machine, instruction: PtxInstruction) -> Handler:
    builders: dict[str, Builder] = {"mma_async": _product}
    return builders.get(instruction.parts[1], _groups)(machine, instruction)


def _set_registers(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`setmaxnreg.inc.sync.aligned.u32 n`: it has no effect on values."""
    number = int(instruction.operands[0], 0)

    def run(lanes: Lanes) -> None:
        firsts = _warpgroups(machine, instruction, lanes)
        if number % _REGISTER_UNIT or number not in _REGISTER_RANGE:
            machine.faults.report(
                FaultKind.INVALID_OPERAND,
                instruction,
                np.array(firsts),
                f"{number} registers of a thread: expected a multiple of {_REGISTER_UNIT} from "
                f"{_REGISTER_RANGE[0]} to {_REGISTER_RANGE[-1]}",
            )

    return run


WARPGROUP: dict[str, Builder] = {"wgmma": _warpgroup, "setmaxnreg": _set_registers}
