"""A model with the first proposal of each of its programs."""

from __future__ import annotations

from compiler.graph.nodes import Graph
from compiler.graph.rewrite.layout_regions import MAX_PIXELS
from compiler.package.lower_model import lower_model
from compiler.target.cpu import CpuTarget
from loopwright.models.build_pool import propose_kernels
from loopwright.models.compilation import Compilation
from loopwright.models.schedules import kernel_name
from tuner.task import Task


def first_proposals(
    graph: Graph, target: CpuTarget, cost_model: bytes, seed: int, max_pixels: int = MAX_PIXELS
) -> Compilation:
    """Return a model with a proposed kernel for each of its programs.

    Args:
        graph: The model.
        target: The CPU.
        cost_model: The stored model that proposes schedules.
        seed: Of the proposals.
        max_pixels: The pixels of the largest images whose convolutions have their channels last.

    Raises:
        ModelError: If the model can't be lowered.
        BuildError: If a program can't be built.
    """
    model = lower_model(graph, max_pixels)
    tasks = {
        kernel_name(number, task.func.name): Task(task.func, target, task.weight)
        for number, task in enumerate(model.tasks)
    }
    kernels = propose_kernels(tasks, cost_model, seed)
    first = {task.workload_key: kernels[name] for name, task in tasks.items()}
    return Compilation(graph, model, target, first)
