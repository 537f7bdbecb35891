"""The instructions of NVIDIA's tensor cores: shapes, types, and which lane holds which element.

A warp holds a matrix in fragments: each of its 32 lanes has some elements in registers. The maps
are those of the PTX ISA, chapter "Warp Level Matrix Multiply-Accumulate Instructions", sections
"Matrix Fragments for mma.m16n8k16", "... m16n8k8" and "... m16n8k32". On sm_90a, four warps that
work together (a warpgroup) hold sums in 128 lanes: chapter "Asynchronous Warpgroup Level Matrix
Multiply-Accumulate Instructions", section "Register Fragments for wgmma.mma_async.m64nNk16".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from compiler.ir.core.dtypes import DType

DEVICE_INSTRUCTION = "device_instruction"
"""The annotation of a loop that names the instruction that takes its place on a device."""

Step = tuple[int, int]
"""A step in rows and columns."""


@dataclass(frozen=True, slots=True)
class FragmentMap:
    """Which element of a tile each lane holds in each of its registers.

    A number is written in digits, the lowest first; each digit has an extent and the step of one
    unit of it. Lane 4 * g + t has the digits t and g. Elements that share a 32-bit register follow
    each other: a lane holds elements 0 and 1 of 16 bits in register 0.

    Attributes:
        rows: The rows of the tile.
        columns: The columns of the tile.
        lane: The digits of the lane.
        element: The digits of the number of an element in a lane.
    """

    rows: int
    columns: int
    lane: tuple[tuple[int, Step], ...]
    element: tuple[tuple[int, Step], ...]

    @property
    def num_lanes(self) -> int:
        """Return the number of lanes: 32 of a warp, or 128 of a warpgroup."""
        return prod(extent for extent, _ in self.lane)

    @property
    def num_elements(self) -> int:
        """Return the number of elements that a lane holds."""
        return prod(extent for extent, _ in self.element)

    @property
    def of_rows(self) -> FragmentMap:
        """Return the map of one number for each row, which all lanes hold that have its elements.

        The digits of the lane whose step is zero number the lanes that hold the same rows.
        """
        lane = tuple((extent, (down, 0)) for extent, (down, _) in self.lane)
        element = tuple((extent, (down, 0)) for extent, (down, _) in self.element if down)
        return FragmentMap(self.rows, 1, lane, element)

    @property
    def transposed(self) -> FragmentMap:
        """Return the map of the same registers for a tile with rows and columns exchanged."""
        lane, element = (
            tuple((extent, (step[1], step[0])) for extent, step in digits)
            for digits in (self.lane, self.element)
        )
        return FragmentMap(self.columns, self.rows, lane, element)

    def position(self, lane: int, element: int) -> tuple[int, int]:
        """Return the row and the column of an element of a lane."""
        parts = (_position(lane, self.lane), _position(element, self.element))
        return sum(row for row, _ in parts), sum(column for _, column in parts)


def _position(number: int, digits: tuple[tuple[int, Step], ...]) -> tuple[int, int]:
    """Return the row and the column that the digits of a number add up to."""
    row = column = 0
    for extent, (down, right) in digits:
        digit, number = number % extent, number // extent
        row, column = row + digit * down, column + digit * right
    return row, column


def _map(
    rows: int, columns: int, lane: tuple[Step, Step], *element: tuple[int, Step]
) -> FragmentMap:
    """Return a map by the steps of the two digits of a lane, and the digits of an element."""
    return FragmentMap(rows, columns, ((4, lane[0]), (8, lane[1])), element)


@dataclass(frozen=True, slots=True)
class MmaInstruction:
    """A product of two tiles that one warp adds to a third.

    Attributes:
        shape: The extents m, n and k: an m by k tile times a k by n tile.
        ptx_types: The types of the result and the operands, as PTX names them.
        operand: The type of the operands in programs; tf32 reads float32.
        accumulator: The type of the sums.
        min_capability: The compute capability that has it first, such as 80.
        a, b, c: The maps of the operands and of the sums; `b` has k rows and n columns.
    """

    shape: tuple[int, int, int]
    ptx_types: tuple[str, str]
    operand: DType
    accumulator: DType
    min_capability: int
    a: FragmentMap
    b: FragmentMap
    c: FragmentMap

    @property
    def name(self) -> str:
        """Return its name in annotations, such as `mma.m16n8k16.bf16.f32`."""
        m, n, k = self.shape
        result, operand = self.ptx_types
        return f"mma.m{m}n{n}k{k}.{operand}.{result}"


_SUMS = _map(16, 8, ((0, 2), (1, 0)), (2, (0, 1)), (2, (8, 0)))
_HALF_A = _map(16, 16, ((0, 2), (1, 0)), (2, (0, 1)), (2, (8, 0)), (2, (0, 8)))
_HALF_B = _map(16, 8, ((2, 0), (0, 1)), (2, (1, 0)), (2, (8, 0)))
_WORD_A = _map(16, 8, ((0, 1), (1, 0)), (2, (8, 0)), (2, (0, 4)))
_WORD_B = _map(8, 8, ((1, 0), (0, 1)), (2, (4, 0)))
_BYTE_A = _map(16, 32, ((0, 4), (1, 0)), (4, (0, 1)), (2, (8, 0)), (2, (0, 16)))
_BYTE_B = _map(32, 8, ((4, 0), (0, 1)), (4, (1, 0)), (2, (16, 0)))

MMA_INSTRUCTIONS: Mapping[str, MmaInstruction] = MappingProxyType(
    {
        instruction.name: instruction
        for instruction in (
            MmaInstruction(
                (16, 8, 16), ("f32", "f16"), "float16", "float32", 80, _HALF_A, _HALF_B, _SUMS
            ),
            MmaInstruction(
                (16, 8, 16), ("f16", "f16"), "float16", "float16", 80, _HALF_A, _HALF_B, _SUMS
            ),
            MmaInstruction(
                (16, 8, 16), ("f32", "bf16"), "bfloat16", "float32", 80, _HALF_A, _HALF_B, _SUMS
            ),
            MmaInstruction(
                (16, 8, 8), ("f32", "tf32"), "float32", "float32", 80, _WORD_A, _WORD_B, _SUMS
            ),
            MmaInstruction(
                (16, 8, 32), ("s32", "s8"), "int8", "int32", 80, _BYTE_A, _BYTE_B, _SUMS
            ),
            MmaInstruction(
                (16, 8, 32),
                ("f32", "e4m3"),
                "float8_e4m3fn",
                "float32",
                89,
                _BYTE_A,
                _BYTE_B,
                _SUMS,
            ),
            MmaInstruction(
                (16, 8, 32), ("f32", "e5m2"), "float8_e5m2", "float32", 89, _BYTE_A, _BYTE_B, _SUMS
            ),
        )
    }
)


@dataclass(frozen=True, slots=True)
class WgmmaInstruction:
    """A product of two tiles in shared memory that a warpgroup adds to sums in its registers.

    Attributes:
        columns: The extent n: a 64 by 16 tile times a 16 by n tile.
        ptx_types: The types of the result and the operands, as PTX names them.
        operand: The type of the operands in programs.
        accumulator: The type of the sums.
    """

    columns: int
    ptx_types: tuple[str, str]
    operand: DType
    accumulator: DType

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the extents m, n and k."""
        return 64, self.columns, 16

    @property
    def name(self) -> str:
        """Return its name, such as `wgmma.m64n128k16.bf16.f32`."""
        m, n, k = self.shape
        result, operand = self.ptx_types
        return f"wgmma.m{m}n{n}k{k}.{operand}.{result}"

    @property
    def note(self) -> str:
        """Return its name in annotations: loops say what n is, as in `wgmma.m64nNk16.bf16.f32`."""
        return self.name.replace(f"n{self.columns}k", "nNk")

    @property
    def c(self) -> FragmentMap:
        """Return the map of the sums."""
        m, n, _ = self.shape
        lane = ((4, (0, 2)), (8, (1, 0)), (4, (16, 0)))
        return FragmentMap(m, n, lane, ((2, (0, 1)), (2, (8, 0)), (n // 8, (0, 8))))


WARPGROUP_SIZE = 128
WGMMA_COLUMNS = range(8, 257, 8)
WGMMA_INSTRUCTIONS: Mapping[str, WgmmaInstruction] = MappingProxyType(
    {
        instruction.name: instruction
        for columns in WGMMA_COLUMNS
        for instruction in (
            WgmmaInstruction(columns, ("f32", "f16"), "float16", "float32"),
            WgmmaInstruction(columns, ("f32", "bf16"), "bfloat16", "float32"),
        )
    }
)
WGMMA_BY_NOTE: Mapping[str, Mapping[int, WgmmaInstruction]] = MappingProxyType(
    {
        note: {i.columns: i for i in WGMMA_INSTRUCTIONS.values() if i.note == note}
        for note in dict.fromkeys(i.note for i in WGMMA_INSTRUCTIONS.values())
    }
)
"""The instructions of each note, by n."""
