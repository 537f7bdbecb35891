"""A model between its graph and an executable: its programs, and a kernel for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.graph.nodes import Graph
from compiler.package.assemble import LoweredModel, assemble
from compiler.package.in_place import work_in_place
from compiler.package.plan import ModelPlan
from compiler.target.cpu import CpuTarget
from loopwright.models.executable import Executable
from loopwright.models.inspection import inspect_model
from loopwright.models.schedules import ProposedKernel
from tuner.task import Task

Kernels = Mapping[str, ProposedKernel]
"""A kernel of each program, by the key of the program."""


@dataclass(frozen=True)
class Compilation:
    """A model whose programs have kernels.

    Attributes:
        graph: The graph that was read.
        model: Its programs and its memory.
        target: The CPU.
        first: The kernels of the first proposals.
    """

    graph: Graph
    model: LoweredModel
    target: CpuTarget
    first: Kernels

    @property
    def tasks(self) -> dict[str, Task]:
        """Return the task of each program by its key; the weight is the number of its calls."""
        return {t.key: Task(t.func, self.target, t.weight) for t in self.model.tasks}

    def plan(self, kernels: Kernels) -> ModelPlan:
        """Return the plan of the model with some kernels."""
        return self._planned(kernels)[1]

    def executable(self, kernels: Kernels) -> Executable:
        """Return the model with some kernels."""
        problems = {key: kernel.problem for key, kernel in kernels.items() if kernel.problem}
        model, plan = self._planned(kernels)
        inspection = inspect_model(model, plan, len(self.graph.nodes), problems)
        traces = {key: kernel.candidate.trace for key, kernel in kernels.items()}
        return Executable(model, plan, inspection, traces)

    def _planned(self, kernels: Kernels) -> tuple[LoweredModel, ModelPlan]:
        built = {key: kernel.built for key, kernel in kernels.items()}
        model, steps = work_in_place(self.model, built, self.target)
        return model, assemble(model, steps, self.target)
