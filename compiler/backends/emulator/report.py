"""The report of an emulation: faults, and counts of instructions and of memory traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compiler.backends.emulator.counters import (
    SECTOR_BYTES,
    AccessCounts,
    Counters,
    InstructionClass,
)
from compiler.backends.emulator.faults import Fault, FaultLog, shortened
from compiler.backends.emulator.grid import Coordinates
from compiler.backends.emulator.program import Program

# Below it, the cost of an access that is not ideal is not worth a line.
_SHOWN_RATIO = 1.05


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """The accesses of one instruction.

    Attributes:
        memory: "shared" or "global".
        instruction: The text of the instruction.
        ptx_line: Its line in the PTX.
        source_line: The line of the CUDA source; None if unknown.
        requests: How many times a warp ran it.
        units: The wavefronts (shared) or the sectors of 32 bytes (global) of all requests.
        ideal: The least number of units for the same elements.
    """

    memory: str
    instruction: str
    ptx_line: int
    source_line: int | None
    requests: int
    units: int
    ideal: int

    @property
    def ratio(self) -> float:
        """Return the units over the least number: in shared memory, the degree of conflicts."""
        return self.units / self.ideal if self.ideal else 1.0


@dataclass(frozen=True, slots=True)
class EmulationReport:
    """What a kernel did.

    Attributes:
        kernel: The name of the kernel.
        grid: The numbers of blocks along x, y and z.
        block: The numbers of threads along x, y and z.
        num_blocks: The number of blocks that ran.
        faults: What it did wrong, in order; empty if nothing.
        instructions: The number of instructions that warps ran, by class.
        accesses: The costs of each instruction that accesses shared or global memory.
        matrix_operations: The operations of matrix products, by names such as `mma.bf16`.
        bytes_transferred: The size of the sectors that the copy engine moved.
        bytes_read: The size of the sectors of global memory that were read, each counted once.
        bytes_written: The size of the sectors of global memory that were written.
    """

    kernel: str
    grid: Coordinates
    block: Coordinates
    num_blocks: int
    faults: tuple[Fault, ...]
    instructions: Mapping[InstructionClass, int]
    accesses: tuple[MemoryAccess, ...]
    matrix_operations: Mapping[str, int]
    bytes_transferred: int
    bytes_read: int
    bytes_written: int

    @property
    def global_bytes(self) -> int:
        """Return the bytes that move between the multiprocessors and the second-level cache."""
        return SECTOR_BYTES * self._units("global") + self.bytes_transferred

    @property
    def shared_wavefronts(self) -> int:
        """Return the wavefronts of shared memory."""
        return self._units("shared")

    @property
    def bank_conflicts(self) -> float:
        """Return the wavefronts of shared memory over the least number of them."""
        return self._ratio("shared")

    @property
    def sector_ratio(self) -> float:
        """Return the sectors of global memory over the least number of them."""
        return self._ratio("global")

    def _units(self, memory: str) -> int:
        return sum(access.units for access in self.accesses if access.memory == memory)

    def _ratio(self, memory: str) -> float:
        ideal = sum(access.ideal for access in self.accesses if access.memory == memory)
        return self._units(memory) / ideal if ideal else 1.0

    def lines(self) -> Iterator[str]:
        """Yield the report as text: faults, costly accesses, counts."""
        state = f"{len(self.faults)} faults" if self.faults else "no faults"
        yield f"{self.kernel}: {self.num_blocks} blocks of {self.block} threads, {state}"
        for fault in self.faults:
            yield f"  {fault}"
        for access in self.accesses:
            if access.ratio >= _SHOWN_RATIO:
                noun = "bank conflicts" if access.memory == "shared" else "sectors"
                line = f"line {access.source_line} of the source, " if access.source_line else ""
                yield (
                    f"  {access.ratio:.2f}x {noun} ({line}line {access.ptx_line} of the PTX): "
                    f"{shortened(access.instruction)}"
                )
        yield (
            f"  global memory: {self.bytes_read} bytes read and {self.bytes_written} written once, "
            f"{self.global_bytes} bytes moved ({self.sector_ratio:.2f}x sectors)"
        )
        yield (
            f"  shared memory: {self.shared_wavefronts} wavefronts "
            f"({self.bank_conflicts:.2f}x bank conflicts)"
        )
        counts = sorted(self.instructions.items(), key=lambda item: -item[1])
        yield "  instructions of warps: " + ", ".join(f"{n} {name}" for name, n in counts)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def make_report(
    program: Program,
    extents: tuple[Coordinates, Coordinates],
    num_blocks: int,
    faults: FaultLog,
    counters: Counters,
) -> EmulationReport:
    """Return the report of a run.

    Args:
        program: The kernel.
        extents: Its blocks and its threads along x, y and z.
        num_blocks: How many blocks ran.
        faults: What it did wrong.
        counters: What it did.
    """
    accesses = (*counters.global_.counts(), *counters.shared.counts())
    return EmulationReport(
        program.name,
        *extents,
        num_blocks,
        faults.faults(),
        counters.by_class(),
        tuple(_access(counts) for counts in accesses),
        counters.matrix_operations(),
        SECTOR_BYTES * counters.num_transferred,
        SECTOR_BYTES * int(counters.sectors_read.sum()),
        SECTOR_BYTES * int(counters.sectors_written.sum()),
    )


def _access(counts: AccessCounts) -> MemoryAccess:
    instruction = counts.instruction
    return MemoryAccess(
        counts.memory,
        instruction.text,
        instruction.ptx_line,
        instruction.source_line,
        counts.requests,
        counts.units,
        counts.ideal,
    )
