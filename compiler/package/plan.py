"""The plan of a model: kernels, the memory that they share, and the order of their calls.

A plan is what lowering hands over and what a package is made of. It has no graph: a step calls a
kernel on addresses in four regions. `verify_plan` proves that no call leaves its region, reads what
was not written, or writes what another argument of the same call reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from compiler.executor.params import Param
from compiler.target.cpu import CpuTarget

ALIGNMENT = 64
"""The alignment in bytes of the arena, of the workspace and of each array of weights."""


class Region(Enum):
    """Where an argument of a kernel is.

    The caller of a model owns its inputs and outputs, each an array of its own. The arena has the
    values between kernels; its content is undefined before a call and after it. Weights are
    read-only.
    """

    INPUT = "input"
    OUTPUT = "output"
    ARENA = "arena"
    WEIGHTS = "weights"


@dataclass(frozen=True, slots=True)
class BufferRef:
    """One argument of a kernel.

    Attributes:
        region: The region that it is in.
        offset: The position of the input or output in its list, or else the offset in bytes in the
            arena or in the weights.
    """

    region: Region
    offset: int


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a kernel.

    Attributes:
        kernel: The name of the kernel.
        arguments: One reference for each parameter, in the order of the kernel's parameters.
        label: The nodes of the model that this call computes, for people.
    """

    kernel: str
    arguments: tuple[BufferRef, ...]
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class PlacedArray:
    """An array of the weights, in the layout that kernels read, at an offset in bytes."""

    offset: int
    array: NDArray[Any]


@dataclass(frozen=True, slots=True)
class PlannedKernel:
    """A kernel of a model; several steps may call it.

    Attributes:
        name: A C identifier, unique in the plan.
        text: Its LLVM IR, as the CPU's code generator writes it; its entry is `lw_kernel`.
        params: Its parameters: the arguments, then constants, then packed copies of constants. One
            that it both reads and writes is an output; see `in_place`.
        workspace_bytes: The memory that a call requires, enough for `num_threads` threads.
        num_threads: The maximum number of threads; 1 without a parallel loop.
        task: The key of the task that it was tuned as; empty if it is not tuned.
        sketch: The name of the sketch of its schedule; empty for a default schedule.
        run_secs: Its measured time in seconds, if it was measured.
        max_error: Its largest measured error relative to the oracle, if it was compared.
        in_place: The names of the outputs that it also reads: an operand is in their memory.
    """

    name: str
    text: str
    params: tuple[Param, ...]
    workspace_bytes: int
    num_threads: int = 1
    task: str = ""
    sketch: str = ""
    run_secs: float | None = None
    max_error: float | None = None
    in_place: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class ModelPlan:
    """A whole model for one CPU.

    Attributes:
        name: A C identifier, which the symbols of the object begin with.
        target: The CPU that all kernels were written for.
        inputs, outputs: The arrays that a caller passes; the names are those of the model.
        kernels: The kernels by name.
        steps: The calls, in order.
        arena_bytes: The size of the arena.
        weights: The constants; no two overlap.
    """

    name: str
    target: CpuTarget
    inputs: tuple[Param, ...]
    outputs: tuple[Param, ...]
    kernels: Mapping[str, PlannedKernel]
    steps: tuple[Step, ...]
    arena_bytes: int = 0
    weights: tuple[PlacedArray, ...] = ()

    @property
    def weights_bytes(self) -> int:
        """Return the size of the weights with the gaps between them."""
        return max((placed.offset + placed.array.nbytes for placed in self.weights), default=0)

    @property
    def workspace_bytes(self) -> int:
        """Return the size of the workspace, which all kernels share."""
        return max((kernel.workspace_bytes for kernel in self.kernels.values()), default=0)

    @property
    def num_threads(self) -> int:
        """Return the maximum number of threads of any kernel."""
        return max((kernel.num_threads for kernel in self.kernels.values()), default=1)
