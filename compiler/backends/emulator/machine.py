"""The state of a run: registers, memories, clocks and faults of the blocks that run together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from compiler.backends.emulator.clocks import Clocks
from compiler.backends.emulator.copies import ThreadCopies
from compiler.backends.emulator.counters import Counters
from compiler.backends.emulator.faults import FaultLog
from compiler.backends.emulator.grid import Grid
from compiler.backends.emulator.mbarriers import MBarriers
from compiler.backends.emulator.memory import (
    PARAMETER_WINDOW,
    SHARED_WINDOW,
    GlobalMemory,
    LocalMemory,
    PartedMemory,
)
from compiler.backends.emulator.operands import Operands
from compiler.backends.emulator.pending import PendingGroups
from compiler.backends.emulator.products import WarpgroupProducts
from compiler.backends.emulator.program import Program
from compiler.backends.emulator.races import ShadowMemory
from compiler.backends.emulator.tensor_copies import TensorCopies, TensorMap
from compiler.backends.emulator.types import Lanes

Handler: TypeAlias = Callable[[Lanes], None]
"""Runs one instruction for the active lanes."""


@dataclass(frozen=True, slots=True)
class EmulatedLaunch:
    """What a kernel is launched with.

    Attributes:
        parameters: The bytes of its parameters.
        dynamic_shared_bytes: The size of the dynamic shared memory.
        granule: The size of the smallest element that the program accesses.
        tensor_maps: By generic address of the parameter, the map and where its tensor begins in
            global memory.
    """

    parameters: bytes
    dynamic_shared_bytes: int
    granule: int
    tensor_maps: Mapping[int, tuple[TensorMap, int]]


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
        copies: The asynchronous copies of threads that are under way.
        tensor_copies: The copies of boxes into shared memory that are under way.
        bulk_stores: The copies of boxes into global memory that are under way.
        mbarriers: The mbarriers in shared memory.
        products: The asynchronous matrix products that are under way.
        faults: The faults so far.
        counters: The counts so far.
    """

    def __init__(
        self,
        program: Program,
        grid: Grid,
        launch: EmulatedLaunch,
        *,
        global_memory: GlobalMemory,
        variables: Mapping[str, int],
        faults: FaultLog,
        counters: Counters,
    ) -> None:
        self.program = program
        self.grid = grid
        self.launch = launch
        self.global_memory = global_memory
        self.faults = faults
        self.counters = counters
        counters.attach(grid)
        self.clocks = Clocks(grid)
        shared_bytes = program.static_shared_bytes
        if program.dynamic_shared is not None:
            shared_bytes = program.shared[program.dynamic_shared] + launch.dynamic_shared_bytes
        self.shared_memory = PartedMemory("shared", SHARED_WINDOW, grid, shared_bytes, faults)
        self.shared_memory.shadow = ShadowMemory(
            "shared",
            len(self.shared_memory.data),
            launch.granule,
            num_columns=grid.num_warps if program.synchronizes_parts else 1,
            is_shared=True,
        )
        self.shared_memory.counter = counters.shared
        self.local_memory = LocalMemory(grid, program.local_bytes, faults)
        self.copies = ThreadCopies(grid, self.shared_memory)
        self.tensor_copies = TensorCopies()
        self.bulk_stores = PendingGroups()
        self.mbarriers = MBarriers()
        self.products = WarpgroupProducts()
        global_memory.attach(faults, grid, counters)
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
