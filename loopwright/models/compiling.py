"""`lw.compile`: from a model to an object that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from compiler.backends.backend import backend_of, host_labels
from compiler.graph.nodes import Graph
from compiler.package.assemble import LoweredModel, assemble
from compiler.package.lower_model import lower_model
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target, complete_target
from compiler.user_cache import default_directory
from loopwright.errors import FallbackWarning
from loopwright.extras import load_extra
from loopwright.models.build_pool import propose_kernels
from loopwright.models.executable import Executable
from loopwright.models.inspection import inspect_model
from loopwright.models.schedules import ProposedKernel, kernel_name
from loopwright.user_warnings import warn_user
from tuner.replay import base_model
from tuner.task import Task

if TYPE_CHECKING:
    from onnx import ModelProto


def compile(
    model: str | Path | bytes | ModelProto | Graph,
    target: Target | str = "cpu",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fixed_inputs: Mapping[str, NDArray[Any]] | None = None,
    seed: int = 0,
) -> Executable:
    """Compile a whole model.

    Args:
        model: An ONNX model, as a file, as bytes or in memory; or a graph.
        target: The CPU to compile for: one whose code this host can run.
        shapes: The shapes of inputs by name, for models with symbolic axes.
        fixed_inputs: The values of inputs by name; they become constants of the model.
        seed: Of the choices among schedules.

    Raises:
        ModelError: If the model is malformed, or needs what is not supported: with the node, the
            reason, and what to do if something helps.
        TargetError: If the target is unknown, or this host can't run code for it.
        BuildError: If a program of the model can't be built.
    """
    parsed_target = complete_target(target, host_labels)
    backend_of(parsed_target).require_host(parsed_target)
    cpu = CpuTarget.of(parsed_target)
    graph = model if isinstance(model, Graph) else _read(model, shapes, fixed_inputs)
    lowered = lower_model(graph)
    proposed = _proposed(lowered, cpu, seed)
    plan = assemble(lowered, {key: kernel.built for key, kernel in proposed.items()}, cpu)
    problems = {key: kernel.problem for key, kernel in proposed.items() if kernel.problem}
    _warn(lowered, problems)
    return Executable(lowered, plan, inspect_model(lowered, plan, len(graph.nodes), problems))


def _read(
    model: str | Path | bytes | ModelProto,
    shapes: Mapping[str, Sequence[int]] | None,
    fixed_inputs: Mapping[str, NDArray[Any]] | None,
) -> Graph:
    read_onnx = load_extra("compiler.graph.read_onnx", "lw.compile of an ONNX model", "onnx")
    graph: Graph = read_onnx.read_onnx(model, shapes=shapes, fixed_inputs=fixed_inputs)
    return graph


def _proposed(model: LoweredModel, target: CpuTarget, seed: int) -> dict[str, ProposedKernel]:
    """Return a kernel for each task of a model, by the key of the task."""
    cost_model = base_model.base_model(default_directory()).model
    tasks = {
        kernel_name(number, task.func.name): Task(task.func, target, task.weight)
        for number, task in enumerate(model.tasks)
    }
    kernels = propose_kernels(tasks, cost_model, seed)
    return {task.workload_key: kernels[name] for name, task in tasks.items()}


def _warn(model: LoweredModel, problems: Mapping[str, str]) -> None:
    """Say which programs have the default schedule although they compute much."""
    names = [task.func.name for task in model.tasks if task.key in problems]
    if names:
        warn_user(
            f"{len(names)} of {len(model.tasks)} programs of the model have the default schedule:"
            f" {', '.join(names)}; inspect().show() prints the reasons",
            FallbackWarning,
        )
