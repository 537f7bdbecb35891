"""Run the plan of a model step by step, with the memory that is not in use overwritten."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.graph.nodes import Graph
from compiler.graph.reference import run_reference
from compiler.package.assemble import LoweredModel, assemble
from compiler.package.build_kernel import build_kernel
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
    stepped = SteppedModel(default_plan(model, target))
    inputs = random_inputs_of(graph)
    calls, results = stepped.bind(inputs)
    stepped.arena.fill(POISON)
    for number, call in enumerate(calls):
        call()
        for low, high in model.memory.dead_ranges(number):
            stepped.arena[low:high] = POISON
    _compare(results, run_reference(graph, inputs), tolerance)
    return model


def default_plan(model: LoweredModel, target: CpuTarget) -> ModelPlan:
    """Return a legal plan with the default schedule of each program."""
    kernels = {
        task.key: build_kernel(Schedule(task.func), target, name=f"k{number}")
        for number, task in enumerate(model.tasks)
    }
    plan = assemble(model, kernels, target)
    verify_plan(plan)
    return plan


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
