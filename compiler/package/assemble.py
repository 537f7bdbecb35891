"""From a lowered graph and its built kernels to the plan of a model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from compiler.backends.module import Module
from compiler.executor.artifact import Artifact
from compiler.executor.memory import aligned_zeros
from compiler.executor.params import Param
from compiler.graph.lower import LoweredGroup
from compiler.graph.memory import MemoryPlan
from compiler.graph.nodes import Constant, Graph, Operand
from compiler.graph.tasks import ModelTask
from compiler.package.build_kernel import CompiledKernel
from compiler.package.plan import ALIGNMENT, BufferRef, ModelPlan, PlacedArray, Region, Step
from compiler.target.cpu import CpuTarget


@dataclass(frozen=True, slots=True, eq=False)
class LoweredModel:
    """A graph as programs and memory.

    Attributes:
        graph: The graph, after rewriting.
        num_channels_last: The convolutions that were rewritten to have channels last.
        memory: Where each value is.
        steps: The programs in the order in which they run: the groups, then the copies.
        tasks: The same programs, each once.
    """

    graph: Graph
    num_channels_last: int
    memory: MemoryPlan
    steps: tuple[LoweredGroup, ...]
    tasks: tuple[ModelTask, ...]


def assemble(
    model: LoweredModel, kernels: Sequence[CompiledKernel], target: CpuTarget
) -> ModelPlan:
    """Return the plan of a model.

    Constants are packed now: each kernel's packer runs once for each different set of constants.

    Args:
        model: The model.
        kernels: The kernel of each step; see `compiler.package.in_place`.
        target: The CPU that they were built for.
    """
    assembly = _Assembly(model)
    steps = tuple(
        assembly.step(group, built, copied_to)
        for group, built, copied_to in zip(model.steps, kernels, _copies(model), strict=True)
    )
    return ModelPlan(
        identifier(model.graph.name),
        target,
        tuple(_param(v.name, v, is_output=False) for v in model.graph.inputs),
        tuple(
            _param(name, x, is_output=True)
            for name, x in zip(model.graph.output_names, model.graph.outputs, strict=True)
        ),
        {built.kernel.name: built.kernel for built in kernels},
        steps,
        model.memory.arena_bytes,
        tuple(assembly.weights.placed),
    )


def identifier(name: str) -> str:
    """Return a C identifier that resembles a name."""
    text = re.sub(r"\W+", "_", name, flags=re.ASCII)[:64].strip("_")
    return text if text and not text[0].isdigit() else f"model_{text}".rstrip("_")


class _Weights:
    """The arrays of the weights so far, each placed once."""

    def __init__(self) -> None:
        self.placed: list[PlacedArray] = []
        self._end = 0
        self._offsets: dict[object, int] = {}

    def place(self, key: object, array: NDArray[Any]) -> int:
        """Return the offset of an array in bytes; equal keys are one array."""
        if key not in self._offsets:
            self._offsets[key] = self._end
            self.placed.append(PlacedArray(self._end, array))
            self._end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        return self._offsets[key]


class _Assembly:
    """Finds the arguments of steps."""

    def __init__(self, model: LoweredModel) -> None:
        self.weights = _Weights()
        self._memory = model.memory
        self._inputs: dict[Operand, int] = {v: n for n, v in enumerate(model.graph.inputs)}
        self._packers: dict[str, Module] = {}
        self._copies: dict[tuple[object, ...], list[BufferRef]] = {}

    def step(self, group: LoweredGroup, built: CompiledKernel, copied_to: int | None) -> Step:
        """Return the call of a kernel for a group; of a copy, to a position of the outputs."""
        passed: list[Operand] = [*group.operands, *group.results]
        by_name = dict(zip(built.operands, passed, strict=copied_to is None))
        arguments = []
        unpacked = built.kernel.params[: len(built.kernel.params) - len(built.packed)]
        for param in unpacked:
            if param.name in by_name:
                arguments.append(self._place(by_name[param.name]))
            else:
                assert copied_to is not None, f"{param.name} has no operand"
                arguments.append(BufferRef(Region.OUTPUT, copied_to))
        arguments += self._packed(built, by_name)
        return Step(built.kernel.name, tuple(arguments), _label(group))

    def _place(self, operand: Operand) -> BufferRef:
        storage = self._memory.storage(operand)
        root = storage.root
        if isinstance(root, Constant):
            offset = self.weights.place(root, root.elements)
            return BufferRef(Region.WEIGHTS, offset + storage.offset)
        if root in self._inputs:
            return BufferRef(Region.INPUT, self._inputs[root])
        if root in self._memory.outputs:
            return BufferRef(Region.OUTPUT, self._memory.outputs[root])
        return BufferRef(Region.ARENA, self._memory.offsets[root] + storage.offset)

    def _packed(self, built: CompiledKernel, by_name: Mapping[str, Operand]) -> list[BufferRef]:
        """Return the packed copies of the constants of a step, made if they are new."""
        if built.packer is None or not built.packed:
            return []
        constants = [
            self._memory.storage(by_name[param.name]).root
            for param in built.packer.params
            if not param.is_output
        ]
        key = (built.packer.name, *constants)
        if key not in self._copies:
            copies = self._pack(built.packer, built.packed, constants)
            self._copies[key] = [
                BufferRef(Region.WEIGHTS, self.weights.place((key, number), copy))
                for number, copy in enumerate(copies)
            ]
        return self._copies[key]

    def _pack(
        self, packer: Artifact, packed: Sequence[Param], constants: Sequence[Operand]
    ) -> list[NDArray[Any]]:
        if packer.name not in self._packers:
            self._packers[packer.name] = Module(packer)
        copies = [aligned_zeros(param.shape, param.dtype) for param in packed]
        for copy in copies:
            copy.fill(0)  # elements beyond the end are read, though never used
        arrays = [x.elements for x in constants if isinstance(x, Constant)]
        self._packers[packer.name](*arrays, *copies)
        return copies


def _copies(model: LoweredModel) -> list[int | None]:
    """Return the position of the output that each step copies to; None for the others."""
    num_groups = len(model.memory.partition.groups)
    return [None] * num_groups + [position for _, position in model.memory.copies]


def _label(group: LoweredGroup) -> str:
    if not group.group.nodes:
        return "copy of a result"
    return ", ".join(node.name or node.outputs[0].name for node in group.group.nodes)


def _param(name: str, operand: Operand, *, is_output: bool) -> Param:
    return Param(name, operand.type.static_shape, operand.type.dtype, is_output=is_output)
