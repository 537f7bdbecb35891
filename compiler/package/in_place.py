"""Let results take the memory of operands that no later step reads, if the arena becomes smaller.

It is decided once the kernels have schedules: `overwriting` proves, for the loops of a kernel, that
it reads each element of the operand only where it overwrites it. Such a step calls another kernel
of the same schedule, which takes the memory of both once. So no two parameters of any kernel share
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from compiler.backends.error import BuildError
from compiler.graph.memory import overwrite
from compiler.graph.nodes import TensorValue
from compiler.package.assemble import LoweredModel
from compiler.package.build_kernel import CompiledKernel, build_overwriting
from compiler.schedule.legality.overwriting import overwriting
from compiler.target.cpu import CpuTarget

Kernels = tuple[CompiledKernel, ...]
"""The kernel of each step of a model."""


@dataclass(frozen=True, slots=True)
class _Overwriting:
    """A result that may take the memory of an operand of its step, and their parameters."""

    step: int
    result: TensorValue
    root: TensorValue
    operand_name: str
    result_name: str


def work_in_place(
    model: LoweredModel, kernels: Mapping[str, CompiledKernel], target: CpuTarget
) -> tuple[LoweredModel, Kernels]:
    """Return a model with results in place, if that saves memory, and the kernel of each step.

    Args:
        model: The model, without results in place.
        kernels: The kernel of each task, by the key of the task.
        target: The CPU that they were built for.
    """
    key_of = {group: task.key for task in model.tasks for group in task.groups}
    separate = tuple(kernels[key_of[group]] for group in model.steps)
    chosen = {each.step: each for each in _choices(model, separate)}
    memory = overwrite(model.memory, {each.result: each.root for each in chosen.values()})
    if not memory.in_place:
        return model, separate
    try:
        return replace(model, memory=memory), _in_place(separate, chosen, target)
    except BuildError:
        return model, separate


def _choices(model: LoweredModel, kernels: Kernels) -> Iterator[_Overwriting]:
    """Yield at most one result in place for each step."""
    proofs: dict[tuple[str, str, str], bool] = {}
    for step in range(len(model.memory.partition.groups)):
        group, built = model.steps[step], kernels[step]
        names = dict(zip((*group.operands, *group.results), built.operands, strict=True))
        for operand, result in model.memory.dying_operands(step):
            key = (built.kernel.name, names[operand], names[result])
            if key not in proofs:
                proofs[key] = overwriting(built.func, *key[1:]) is not None
            root = model.memory.storage(operand).root
            if proofs[key] and isinstance(root, TensorValue):
                yield _Overwriting(step, result, root, *key[1:])
                break


def _in_place(kernels: Kernels, chosen: Mapping[int, _Overwriting], target: CpuTarget) -> Kernels:
    """Return the kernel of each step; each of those that work in place is built once."""
    made: dict[tuple[str, str, str], CompiledKernel] = {}
    steps = list(kernels)
    for step, each in chosen.items():
        key = (kernels[step].kernel.name, each.operand_name, each.result_name)
        if key not in made:
            made[key] = build_overwriting(kernels[step], *key[1:], target)
        steps[step] = made[key]
    return tuple(steps)
