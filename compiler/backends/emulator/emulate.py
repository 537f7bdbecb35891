"""The entry of the emulator: run a kernel of PTX on NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from compiler.backends.emulator.arguments import Argument, LaunchArguments
from compiler.backends.emulator.counters import Counters
from compiler.backends.emulator.errors import EmulatorError, StopEmulation
from compiler.backends.emulator.faults import FaultLog
from compiler.backends.emulator.grid import Coordinates, Grid
from compiler.backends.emulator.groups import Order
from compiler.backends.emulator.machine import EmulatedLaunch, Machine
from compiler.backends.emulator.memory import GlobalMemory
from compiler.backends.emulator.parse import parse_kernel
from compiler.backends.emulator.program import Program
from compiler.backends.emulator.races import ShadowMemory
from compiler.backends.emulator.report import EmulationReport, make_report
from compiler.backends.emulator.scheduler import Scheduler
from compiler.backends.emulator.types import types_of

DEFAULT_MAX_STEPS = 5_000_000
"""Instructions of groups of lanes: minutes of work, more than any kernel of a test needs."""

_MAX_BATCH_BYTES = 1 << 28
"""Blocks run together while their registers and memories fit into this size."""


def emulate(
    ptx: str,
    kernel: str | None,
    grid: Coordinates,
    block: Coordinates,
    arguments: Sequence[Argument],
    *,
    dynamic_shared_bytes: int = 0,
    blocks: Sequence[int] | None = None,
    order: Order = "lockstep",
    max_steps: int = DEFAULT_MAX_STEPS,
) -> EmulationReport:
    """Run a kernel on the CPU and report its faults and counts.

        compiled = compile_cuda(text, "sm_90a")
        a = np.arange(1024, dtype=np.float32)
        b = np.empty_like(a)
        report = emulate(compiled.ptx, "scale", (4, 1, 1), (256, 1, 1), [a, b, 1024])
        assert not report.faults, report

    Args:
        ptx: The text of a module.
        kernel: The name of the kernel; None if the module has one only.
        grid: The numbers of blocks along x, y and z.
        block: The numbers of threads along x, y and z.
        arguments: C-contiguous arrays, which are buffers in global memory and changed in place,
            numbers, and tensor maps, in the order of the parameters. An access outside of an array
            is a fault.
        dynamic_shared_bytes: The size of the dynamic shared memory of a block.
        blocks: The linear numbers of the blocks to run; None for all.
        order: How warps take turns: "lockstep" (the fastest), or a seed. With a seed each warp runs
            as far as it can before the others, which shows waits that are missing.
        max_steps: The number of steps after which the run ends as an endless loop.

    Raises:
        EmulatorError: If the kernel has an instruction that the emulator does not implement, or
            the launch does not fit the kernel. What a kernel does wrong is in the report instead.
    """
    if min(*grid, *block) < 1:
        raise EmulatorError(f"a launch of {grid} blocks of {block} threads has no thread")
    program = parse_kernel(ptx, kernel)
    given = LaunchArguments(program, arguments)
    memory = GlobalMemory(
        given.buffers + [(v.name, np.frombuffer(v.content, np.uint8)) for v in program.variables]
    )
    variables = {
        variable.name: memory.address(len(given.buffers) + number)
        for number, variable in enumerate(program.variables)
    }
    granule = _granule(program)
    memory.shadow = ShadowMemory("global", len(memory.data), granule)
    launch = EmulatedLaunch(
        given.pack(memory), dynamic_shared_bytes, granule, given.tensor_maps(memory)
    )
    numbers = np.arange(math.prod(grid)) if blocks is None else np.asarray(blocks, np.int64)
    counters = Counters(program.instructions, len(memory.data))
    faults = FaultLog(Grid(grid, block, numbers[:1]))
    size = _batch_size(program, math.prod(block), dynamic_shared_bytes)
    with np.errstate(all="ignore"):
        try:
            for start in range(0, len(numbers), size):
                lanes = Grid(grid, block, numbers[start : start + size])
                faults.follow(lanes)
                machine = Machine(
                    program,
                    lanes,
                    launch,
                    global_memory=memory,
                    variables=variables,
                    faults=faults,
                    counters=counters,
                )
                Scheduler(machine, order, max_steps).run()
                machine.bulk_stores.finish()
        except StopEmulation:
            pass
    given.copy_back(memory)
    return make_report(program, (grid, block), len(numbers), faults, counters)


def _batch_size(program: Program, num_threads: int, dynamic_shared_bytes: int) -> int:
    """Return how many blocks run together."""
    registers = sum(_register_bytes(name) for name in program.registers.values())
    thread = registers + 2 * program.local_bytes + 64
    # The shadow of the shared memory is several times as large as the memory.
    shared = 8 * (program.static_shared_bytes + dynamic_shared_bytes)
    return max(1, _MAX_BATCH_BYTES // (num_threads * thread + shared))


def _register_bytes(type_name: str) -> int:
    return 1 if type_name == "pred" else types_of(("", type_name))[0].num_bytes


def _granule(program: Program) -> int:
    """Return the size of the smallest element that the program accesses, at most 4."""
    sizes = [
        types_of(instruction.parts)[-1].num_bytes
        for instruction in program.instructions
        if instruction.opcode in ("ld", "st", "atom", "red")
        and not {"param", "local"} & set(instruction.parts)
        and types_of(instruction.parts)
    ]
    return min([4, *sizes])
