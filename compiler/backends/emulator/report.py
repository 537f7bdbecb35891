"""The report of an emulation."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.backends.emulator.faults import Fault
from compiler.backends.emulator.grid import Coordinates


@dataclass(frozen=True, slots=True)
class EmulationReport:
    """What a kernel did.

    Attributes:
        kernel: The name of the kernel.
        grid: The numbers of blocks along x, y and z.
        block: The numbers of threads along x, y and z.
        faults: What it did wrong, in order; empty if nothing.
    """

    kernel: str
    grid: Coordinates
    block: Coordinates
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        if not self.faults:
            return f"{self.kernel}: no faults"
        lines = [f"{self.kernel}: {len(self.faults)} faults"]
        return "\n".join([*lines, *(f"  {fault}" for fault in self.faults)])
