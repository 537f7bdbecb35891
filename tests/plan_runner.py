"""Run the plan of a model step by step, with the memory that is not in use overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.graph.nodes import Graph
from compiler.graph.reference import run_reference
from compiler.package.assemble import LoweredModel, assemble
from compiler.package.build_kernel import CompiledKernel, build_kernel
from compiler.package.in_place import work_in_place
from compiler.package.lower_model import lower_model
from compiler.package.plan import ModelPlan
from compiler.package.stepped_model import SteppedModel
from compiler.package.verify_plan import verify_plan
from compiler.schedule.schedule import Schedule
from compiler.target.cpu import CpuTarget

Array = NDArray[Any]
POISON = 0xFF  # NaN in each type of floats


def compile_and_compare(
    graph: Graph, target: CpuTarget, *, tolerance: float = 1e-4
) -> LoweredModel:
    """Compile a graph with default schedules, and compare it with its reference on an input."""
    model = lower_model(graph)
    planned, plan = plan_in_place(model, default_kernels(model, target), target)
    inputs = random_inputs_of(graph)
    _compare(run_poisoned(planned, plan, inputs), run_reference(graph, inputs), tolerance)
    return model


def run_poisoned(
    model: LoweredModel, plan: ModelPlan, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the results of a plan, with the memory that is not in use overwritten."""
    stepped = SteppedModel(plan)
    calls, results = stepped.bind(inputs)
    stepped.arena.fill(POISON)
    for number, call in enumerate(calls):
        call()
        for low, high in model.memory.dead_ranges(number):
            stepped.arena[low:high] = POISON
    return results


def default_kernels(model: LoweredModel, target: CpuTarget) -> dict[str, CompiledKernel]:
    """Return a kernel of each program, with its default schedule."""
    return {
        task.key: build_kernel(Schedule(task.func), target, name=f"k{number}", task=task.key)
        for number, task in enumerate(model.tasks)
    }


def plan_in_place(
    model: LoweredModel, kernels: Mapping[str, CompiledKernel], target: CpuTarget
) -> tuple[LoweredModel, ModelPlan]:
    """Return a model with results in place, and its legal plan."""
    model, steps = work_in_place(model, kernels, target)
    plan = assemble(model, steps, target)
    verify_plan(plan)
    return model, plan


def default_plan(model: LoweredModel, target: CpuTarget) -> ModelPlan:
    """Return a legal plan with the default schedule of each program."""
    return plan_in_place(model, default_kernels(model, target), target)[1]


def same_results(graph: Graph, other: Graph, *, tolerance: float = 1e-5) -> None:
    """Compare the references of two graphs of the same inputs and results."""
    inputs = random_inputs_of(graph)
    _compare(run_reference(other, inputs), run_reference(graph, inputs), tolerance)


def random_inputs_of(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Return an array for each input of a graph."""
    rng = np.random.default_rng(seed)
    return {
        value.name: rng.standard_normal(value.type.static_shape).astype(value.type.dtype)
        for value in graph.inputs
    }


def _compare(results: dict[str, Array], expected: dict[str, Array], tolerance: float) -> None:
    assert results.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(results[name], array, rtol=tolerance, atol=tolerance)
