"""Counters: instructions by class, bank conflicts of shared memory, sectors of global memory.

Counts are exact for each access of each warp. The costs of an access depend on the differences of
the addresses of a warp only, so they are computed once for each pattern of addresses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from compiler.backends.emulator.grid import WARP_SIZE, Grid
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import ALL, Array, types_of

SECTOR_BYTES = 32
NUM_BANKS = 32
BANK_BYTES = 4
_MAX_PATTERNS = 4096
_KEY_BITS = 40
_OFFSET = 1 << (_KEY_BITS - 1)
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")


class InstructionClass(StrEnum):
    """Classes of instructions, by the unit of the multiprocessor that runs them."""

    FMA = "fma"  # float32 arithmetic
    HALF = "half"  # float16 and bfloat16 arithmetic
    DOUBLE = "double"
    INTEGER = "integer"
    SPECIAL = "special"  # reciprocals, roots, exponentials, sines
    CONVERT = "convert"
    GLOBAL_LOAD = "global load"
    GLOBAL_STORE = "global store"
    SHARED_LOAD = "shared load"
    SHARED_STORE = "shared store"
    LOCAL = "local"
    ATOMIC = "atomic"
    ASYNC_COPY = "asynchronous copy"
    MATRIX_LOAD = "matrix load"
    MATRIX = "matrix product"
    WARP = "warp exchange"
    BARRIER = "barrier"
    CONTROL = "control"


_BY_NAME: dict[str, InstructionClass] = {
    **dict.fromkeys(("bra", "ret", "exit", "call"), InstructionClass.CONTROL),
    **dict.fromkeys(
        ("bar", "barrier", "mbarrier", "fence", "membar"),
        InstructionClass.BARRIER,
    ),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "elect"), InstructionClass.WARP),
    **dict.fromkeys(("atom", "red"), InstructionClass.ATOMIC),
    **dict.fromkeys(("ldmatrix", "stmatrix"), InstructionClass.MATRIX_LOAD),
    **dict.fromkeys(("mma", "wgmma"), InstructionClass.MATRIX),
    **dict.fromkeys(
        ("rcp", "sqrt", "rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), InstructionClass.SPECIAL
    ),
    "cp": InstructionClass.ASYNC_COPY,
    "cvt": InstructionClass.CONVERT,
}


def classify(instruction: PtxInstruction) -> InstructionClass:
    """Return the class of an instruction."""
    parts = instruction.parts
    if parts[0] in ("ld", "st"):
        return _classify_access(parts)
    if parts[0] in _BY_NAME:
        return _BY_NAME[parts[0]]
    kinds = types_of(parts)
    if kinds and kinds[-1].is_float and parts[0] not in ("mov", "selp"):
        size = kinds[-1].dtype.itemsize
        if size == 4:
            return InstructionClass.FMA
        return InstructionClass.DOUBLE if size == 8 else InstructionClass.HALF
    return InstructionClass.INTEGER


def _classify_access(parts: tuple[str, ...]) -> InstructionClass:
    loads = parts[0] == "ld"
    if "local" in parts or "param" in parts:
        return InstructionClass.LOCAL if "local" in parts else InstructionClass.CONTROL
    if any(part.startswith("shared") for part in parts):
        return InstructionClass.SHARED_LOAD if loads else InstructionClass.SHARED_STORE
    return InstructionClass.GLOBAL_LOAD if loads else InstructionClass.GLOBAL_STORE


@dataclass(slots=True)
class AccessCounts:
    """The accesses of one instruction to shared or global memory.

    Attributes:
        instruction: The instruction.
        memory: "shared" or "global".
        requests: The number of times that a warp ran it.
        units: Wavefronts of shared memory, or sectors of global memory.
        ideal: The units that the same bytes need at least.
    """

    instruction: PtxInstruction
    memory: str
    requests: int = 0
    units: int = 0
    ideal: int = 0


Costs = tuple[int, int, int]
"""Requests, units, and the least number of units."""


class AccessCounter:
    """Counts the accesses to one memory."""

    def __init__(self, memory: str, alignment: int, cost: Callable[..., Costs]) -> None:
        self._memory = memory
        self._alignment = alignment
        self._cost = cost
        self._patterns: dict[tuple[bytes, bytes, int], Costs] = {}
        self._counts: dict[int, AccessCounts] = {}

    def attach(self, grid: Grid) -> None:
        """Count the accesses of the threads of some blocks from now on."""
        self._grid = grid
        self._patterns.clear()

    def count(self, access: LaneAccess) -> None:
        """Count one access of the active lanes."""
        offsets, num_bytes, lanes = access.offsets, access.num_bytes, access.lanes
        if not len(offsets):
            return
        grid = self._grid
        aligned = ~np.int64(self._alignment - 1)
        if lanes is ALL and grid.num_threads % WARP_SIZE == 0:
            rows = offsets.reshape(-1, WARP_SIZE)
            relative = (rows - (rows[:, :1] & aligned)).reshape(-1)
            active = grid.lanes
            key = (relative.astype(np.int32).tobytes(), b"", num_bytes)
        else:
            active = grid.lanes[lanes]
            warps = grid.warps[active]
            starts = np.concatenate(([True], warps[1:] != warps[:-1]))
            first = offsets[starts] & aligned
            relative = offsets - first[np.cumsum(starts) - 1]
            key = (relative.astype(np.int32).tobytes(), active.tobytes(), num_bytes)
        costs = self._patterns.get(key)
        if costs is None:
            if len(self._patterns) >= _MAX_PATTERNS:
                self._patterns.clear()
            positions = grid.threads[active] % WARP_SIZE
            costs = self._cost(relative, grid.warps[active], positions, num_bytes)
            self._patterns[key] = costs
        number = access.instruction.index
        counts = self._counts.get(number)
        if counts is None:
            counts = self._counts[number] = AccessCounts(access.instruction, self._memory)
        counts.requests += costs[0]
        counts.units += costs[1]
        counts.ideal += costs[2]

    def counts(self) -> tuple[AccessCounts, ...]:
        """Return the counts of each instruction, in the order of the program."""
        return tuple(self._counts[index] for index in sorted(self._counts))


def wavefronts(addresses: Array, warps: Array, positions: Array, num_bytes: int) -> Costs:
    """Return the costs of accesses to shared memory.

    A wavefront serves each of the 32 banks once, with one word of 4 bytes. Lanes with accesses of 8
    bytes go in two halves of the warp, those with 16 bytes in four quarters.
    """
    words_each = max(1, num_bytes // BANK_BYTES)
    phases = warps * words_each + positions * words_each // WARP_SIZE
    words = (addresses // BANK_BYTES)[:, None] + np.arange(words_each)
    pairs = _distinct(np.broadcast_to(phases[:, None], words.shape), words)
    banks = (pairs >> _KEY_BITS) * NUM_BANKS + (pairs & (NUM_BANKS - 1))
    numbers, uses = np.unique(banks, return_counts=True)
    _, starts = np.unique(numbers // NUM_BANKS, return_index=True)
    deepest = np.maximum.reduceat(uses, starts)
    return _num_distinct(warps), int(deepest.sum()), len(deepest)


def sectors(addresses: Array, warps: Array, positions: Array, num_bytes: int) -> Costs:
    """Return the costs of accesses to global memory: distinct sectors of 32 bytes for each warp."""
    del positions
    touched = _distinct(warps, addresses // SECTOR_BYTES)
    elements = _distinct(warps, addresses // num_bytes) >> _KEY_BITS
    starts = np.flatnonzero(np.concatenate(([True], elements[1:] != elements[:-1])))
    counts = np.diff(np.append(starts, len(elements)))
    needed = -(-counts * num_bytes // SECTOR_BYTES)
    return len(starts), len(touched), int(needed.sum())


def _distinct(groups: Array, values: Array) -> Array:
    """Return the distinct pairs in ascending order, with the group in the high bits.

    Values are differences of addresses, which may be negative.
    """
    keys = ((groups.astype(np.int64) << _KEY_BITS) + values + _OFFSET).reshape(-1)
    keys.sort()
    return keys[np.concatenate(([True], keys[1:] != keys[:-1]))]


def _num_distinct(ascending: Array) -> int:
    return 1 + int(np.count_nonzero(ascending[1:] != ascending[:-1]))


class Counters:
    """The counts of a run.

    Attributes:
        shared: The accesses to shared memory.
        global_: The accesses to global memory.
        issues: For each instruction, the number of times that a warp ran it.
        num_transferred: The sectors that the copy engine moves.
        sectors_read: For each sector of global memory, whether a thread read it.
        sectors_written: For each sector of global memory, whether a thread wrote it.
    """

    def __init__(self, instructions: Sequence[PtxInstruction], global_bytes: int) -> None:
        self._instructions = instructions
        self.shared = AccessCounter("shared", BANK_BYTES, wavefronts)
        self.global_ = AccessCounter("global", SECTOR_BYTES, sectors)
        self.num_transferred = 0
        self.issues = [0] * len(instructions)
        self.sectors_read = np.zeros(global_bytes // SECTOR_BYTES + 1, np.bool_)
        self.sectors_written = np.zeros(global_bytes // SECTOR_BYTES + 1, np.bool_)

    def attach(self, grid: Grid) -> None:
        """Count what the threads of some blocks do from now on."""
        self.shared.attach(grid)
        self.global_.attach(grid)

    def matrix_operations(self) -> dict[str, int]:
        """Return the floating-point or integer operations of matrix products.

        Returns:
            By instruction and type of the operands, such as `mma.bf16`.
        """
        operations: dict[str, int] = {}
        for instruction, count in zip(self._instructions, self.issues, strict=True):
            if count and instruction.opcode in ("mma", "wgmma"):
                shape = next((s for p in instruction.parts if (s := _SHAPE.fullmatch(p))), None)
                if shape is not None:
                    m, n, k = map(int, shape.groups())
                    # Four warps run one product of a warpgroup.
                    products = count / 4 if instruction.opcode == "wgmma" else count
                    name = f"{instruction.opcode}.{types_of(instruction.parts)[1].name}"
                    operations[name] = operations.get(name, 0) + int(2 * m * n * k * products)
        return operations

    def by_class(self) -> dict[InstructionClass, int]:
        """Return the number of instructions that warps ran, by class."""
        counts: dict[InstructionClass, int] = {}
        for instruction, count in zip(self._instructions, self.issues, strict=True):
            if count:
                name = classify(instruction)
                counts[name] = counts.get(name, 0) + count
        return counts
