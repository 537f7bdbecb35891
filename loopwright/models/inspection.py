"""The inspection of a compiled model: kernels, operators without kernels, memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from compiler.package.assemble import LoweredModel
from compiler.package.plan import ModelPlan
from loopwright.tables import FittedTable


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """A kernel of a model.

    Attributes:
        name: The name of the kernel.
        operators: The operators that it computes, joined by `+`.
        sketch: The name of the sketch of its schedule.
        calls: The number of its calls in a run.
        problem: Why it has the default schedule; empty if it has another.
        arrays_bytes: The size of its parameters.
    """

    name: str
    operators: str
    sketch: str
    calls: int
    problem: str
    arrays_bytes: int


@dataclass(frozen=True, slots=True)
class ModelInspection:
    """The inspection of a compiled model.

    Attributes:
        num_nodes: The number of nodes before rewriting.
        num_kernel_nodes: The number of nodes that kernels compute.
        kernels: The kernels, in the order of their first call.
        num_views: Nodes without a kernel: their memory is that of another value.
        num_joins: Concatenations without a kernel: their parts are written in place.
        num_copies: Results that are copied at the end.
        num_channels_last: Convolutions that are computed with channels last.
        num_in_place: Calls of kernels that write a result over an operand.
        saved_bytes: How much larger the arena is without these.
        arena_bytes, lower_bound_bytes: The memory of values between kernels, and the least that
            this order of kernels allows.
        weights_bytes: The constants, in the layout that kernels read.
        workspace_bytes: The memory inside kernels.
    """

    num_nodes: int
    num_kernel_nodes: int
    kernels: tuple[KernelSummary, ...]
    num_views: int
    num_joins: int
    num_copies: int
    num_channels_last: int
    num_in_place: int
    saved_bytes: int
    arena_bytes: int
    lower_bound_bytes: int
    weights_bytes: int
    workspace_bytes: int

    @property
    def num_calls(self) -> int:
        """Return the number of calls of kernels in a run."""
        return sum(kernel.calls for kernel in self.kernels)

    def __str__(self) -> str:
        """Return a summary of a few lines."""
        return (
            f"{self.num_nodes} nodes: {self.num_calls} calls of {len(self.kernels)} kernels,"
            f" {self.num_views} views, {self.num_joins} joins in place, {self.num_copies} copies of"
            f" results{self._layouts}\n"
            f"arena {self.arena_bytes:,} bytes (at least {self.lower_bound_bytes:,}{self._saved}),"
            f" weights {self.weights_bytes:,} bytes, workspace {self.workspace_bytes:,} bytes"
        )

    @property
    def _layouts(self) -> str:
        if not self.num_channels_last:
            return ""
        return f", {self.num_channels_last} convolutions with channels last"

    @property
    def _saved(self) -> str:
        if not self.num_in_place:
            return ""
        return f"; {self.num_in_place} calls in place save {self.saved_bytes:,}"

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON's values."""
        return asdict(self) | {"num_calls": self.num_calls}

    def show(self) -> None:
        """Print the summary and the kernels."""
        table = Table()
        for heading in ("kernel", "operators", "sketch"):
            table.add_column(heading, overflow="fold")
        table.add_column("calls", justify="right")
        for kernel in self.kernels:
            sketch = kernel.sketch + (f" ({kernel.problem})" if kernel.problem else "")
            table.add_row(kernel.name, kernel.operators, sketch, str(kernel.calls))
        console = Console()
        console.print(str(self), highlight=False)
        console.print(FittedTable(table))


def inspect_model(
    model: LoweredModel, plan: ModelPlan, num_nodes: int, problems: Mapping[str, str]
) -> ModelInspection:
    """Return the inspection of a model.

    Args:
        model: The model.
        plan: Its plan.
        num_nodes: The number of nodes before rewriting.
        problems: Why a task has the default schedule, by the keys of tasks.
    """
    calls = Counter(step.kernel for step in plan.steps)
    operators = {task.key: task.groups[0].group.label or "copy" for task in model.tasks}
    kernels = tuple(
        KernelSummary(
            kernel.name,
            operators[kernel.task],
            kernel.sketch,
            calls[kernel.name],
            problems.get(kernel.task, ""),
            sum(param.size_bytes for param in kernel.params),
        )
        for kernel in plan.kernels.values()
    )
    partition = model.memory.partition
    return ModelInspection(
        num_nodes,
        sum(len(group.nodes) for group in partition.groups),
        kernels,
        len(partition.views),
        len(partition.joins),
        len(model.memory.copies),
        model.num_channels_last,
        len(model.memory.in_place),
        model.memory.saved_bytes,
        model.memory.arena_bytes,
        model.memory.lower_bound_bytes,
        plan.weights_bytes,
        plan.workspace_bytes,
    )
