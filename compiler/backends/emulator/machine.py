"""The state of a run: registers, memories, clocks and faults of the blocks that run together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from compiler.backends.emulator.faults import FaultLog
from compiler.backends.emulator.grid import Grid
from compiler.backends.emulator.memory import (
    PARAMETER_WINDOW,
    SHARED_WINDOW,
    GlobalMemory,
    LocalMemory,
    PartedMemory,
)
from compiler.backends.emulator.operands import Operands
from compiler.backends.emulator.program import Program
from compiler.backends.emulator.races import Clocks, ShadowMemory
from compiler.backends.emulator.types import Lanes

Handler: TypeAlias = Callable[[Lanes], None]
"""Runs one instruction for the active lanes."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What a kernel is launched with.

    Attributes:
        parameters: The bytes of its parameters.
        dynamic_shared_bytes: The size of the dynamic shared memory.
        granule: The size of the smallest element that the program accesses.
    """

    parameters: bytes
    dynamic_shared_bytes: int
    granule: int


class Machine:
    """The state of the blocks that run together.

    Attributes:
        program: The kernel.
        grid: Its threads as lanes.
        launch: The arguments of the launch.
        global_memory: Global and constant memory, which all blocks share.
        shared_memory: The shared memory of each block.
        local_memory: The local memory of each thread.
        operands: The registers, and the addresses of variables.
        clocks: The order of threads.
        faults: The faults so far.
    """

    def __init__(
        self,
        program: Program,
        grid: Grid,
        launch: Launch,
        *,
        global_memory: GlobalMemory,
        variables: Mapping[str, int],
        faults: FaultLog,
    ) -> None:
        self.program = program
        self.grid = grid
        self.launch = launch
        self.global_memory = global_memory
        self.faults = faults
        self.clocks = Clocks(grid)
        shared_bytes = program.static_shared_bytes
        if program.dynamic_shared is not None:
            shared_bytes = program.shared[program.dynamic_shared] + launch.dynamic_shared_bytes
        self.shared_memory = PartedMemory("shared", SHARED_WINDOW, grid, shared_bytes, faults)
        self.shared_memory.shadow = ShadowMemory(
            "shared", len(self.shared_memory.data), launch.granule, True
        )
        self.local_memory = LocalMemory(grid, program.local_bytes, faults)
        global_memory.attach(faults, grid)
        for memory in (self.shared_memory, global_memory):
            if memory.shadow is not None:
                memory.shadow.attach(grid, self.clocks, faults, program.instructions)
        parameters = {
            name: PARAMETER_WINDOW + parameter.offset
            for name, parameter in program.parameters.items()
        }
        self.operands = Operands(
            program.registers,
            grid.special_registers(),
            {**parameters, **variables, **program.shared, **program.local},
            grid.num_lanes,
        )
