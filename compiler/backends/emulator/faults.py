"""Faults: what a kernel does wrong, with the instruction, the source line and the thread."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from compiler.backends.emulator.errors import StopEmulation
from compiler.backends.emulator.grid import Coordinates, Grid
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array

MAX_FAULTS = 20
"""The run stops at this number: later faults are consequences of the first ones."""


class FaultKind(StrEnum):
    """Kinds of faults."""

    OUT_OF_BOUNDS = "out of bounds"
    MISALIGNED = "misaligned access"
    UNINITIALIZED = "uninitialized memory"
    RACE = "race"
    EARLY_ACCESS = "access before completion"  # of an asynchronous copy or product
    MISSING_FENCE = "missing fence"
    DIVERGENT_BARRIER = "divergent barrier"
    DIVERGENT_WARP = "divergent warp"
    DEADLOCK = "deadlock"
    ENDLESS_LOOP = "endless loop"
    INVALID_OPERAND = "invalid operand"
    TRAP = "trap"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and the first thread that shows it.

    Attributes:
        kind: What is wrong.
        message: The same in words, with its values.
        ptx_line: The line of the instruction in the PTX, from 1.
        source_line: The line of the CUDA source; None if the PTX names none.
        block: The block, as (x, y, z).
        thread: The thread in its block, as (x, y, z).
        num_threads: The number of threads with this fault in the same step.
        instruction: The text of the instruction.
    """

    kind: FaultKind
    message: str
    ptx_line: int
    source_line: int | None
    block: Coordinates
    thread: Coordinates
    num_threads: int
    instruction: str

    def __str__(self) -> str:
        source = f"line {self.source_line} of the source, " if self.source_line else ""
        others = f" and {self.num_threads - 1} more" if self.num_threads > 1 else ""
        return (
            f"{self.kind.value}: {self.message} ({source}line {self.ptx_line} of the PTX; "
            f"block {self.block}, thread {self.thread}{others}): {shortened(self.instruction)}"
        )


def shortened(text: str) -> str:
    """Return the text of an instruction in at most 100 characters."""
    return text if len(text) <= 100 else text[:97] + "..."


class FaultLog:
    """Collects the faults of a run, one for each kind and instruction."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._faults: dict[tuple[FaultKind, int], Fault] = {}

    def __bool__(self) -> bool:
        return bool(self._faults)

    def follow(self, grid: Grid) -> None:
        """Name the threads of other blocks from now on."""
        self._grid = grid

    def report(
        self, kind: FaultKind, instruction: PtxInstruction, lanes: Array, message: str
    ) -> None:
        """Record a fault of `lanes`; the first lane is named.

        Raises:
            StopEmulation: If there are too many faults to go on.
        """
        key = (kind, instruction.index)
        if key in self._faults:
            return
        block, thread = self._grid.coordinates(int(lanes[0]))
        self._faults[key] = Fault(
            kind,
            message,
            instruction.ptx_line,
            instruction.source_line,
            block,
            thread,
            len(lanes),
            instruction.text,
        )
        if len(self._faults) >= MAX_FAULTS:
            raise StopEmulation

    def stop(
        self, kind: FaultKind, instruction: PtxInstruction, lanes: Array, message: str
    ) -> None:
        """Record a fault after which the run cannot go on."""
        self.report(kind, instruction, lanes, message)
        raise StopEmulation

    def faults(self) -> tuple[Fault, ...]:
        """Return the faults in the order in which they occurred."""
        return tuple(self._faults.values())
