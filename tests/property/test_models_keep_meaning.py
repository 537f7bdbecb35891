"""Random graphs, compiled as whole models, compute what their reference computes."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.backends.error import BuildError
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Graph, TensorType, constant
from compiler.graph.rewrite.simplify import simplify
from compiler.graph.verify import verify_graph
from compiler.package.assemble import LoweredModel, assemble
from compiler.package.build_kernel import CompiledKernel, build_kernel
from compiler.package.lower_model import lower_model
from tests.plan_runner import (
    compile_and_compare,
    plan_in_place,
    random_inputs_of,
    run_poisoned,
    same_results,
)
from tests.random_graphs import random_graph
from tests.targets import here
from tuner.space.generate import design_space
from tuner.task import Task

_SEEDS = st.integers(0, 1 << 31)


@settings(max_examples=25, deadline=None)
@given(seed=_SEEDS)
def test_a_compiled_graph_computes_what_its_reference_computes(seed: int) -> None:
    compile_and_compare(random_graph(seed, 16), here())


@settings(max_examples=50, deadline=None)
@given(seed=_SEEDS)
def test_a_simplified_graph_is_legal_and_computes_the_same(seed: int) -> None:
    graph = random_graph(seed, 24)
    simple = simplify(graph)
    verify_graph(simple)
    names = [node.op for node in graph.nodes]
    # Norms become a product and a sum, and sums of bytes lack what zero points add to them.
    more = names.count("nn.batch_norm") + 4 * names.count("quantize")
    assert len(simple.nodes) <= len(graph.nodes) + more
    same_results(graph, simple)


def _residual_graph(rng: np.random.Generator) -> Graph:
    """Return a graph of layers that add something to their operand, which is not read again."""
    builder = GraphBuilder("residual")
    shape = ((3, 40), (9, 17), (2, 5, 24))[rng.integers(3)]
    value = builder.add("nn.softmax", builder.input("x", TensorType(shape, "float32")))
    for _ in range(3):
        inner = builder.add("nn.softmax", value, axis=int(rng.integers(len(shape))))
        if rng.random() < 0.6:
            weights = rng.uniform(-0.2, 0.2, (shape[-1], shape[-1])).astype(np.float32)
            inner = builder.add("matmul", inner, constant(weights))
        value = builder.add(str(rng.choice(["add", "multiply", "subtract"])), inner, value)
    return builder.finish([builder.add("nn.softmax", value)], ["y"])


def _random_kernels(model: LoweredModel, rng: np.random.Generator) -> dict[str, CompiledKernel]:
    """Return a kernel of each program with a random schedule of its design space."""
    kernels = {}
    for number, task in enumerate(model.tasks):
        space = design_space(Task(task.func, here()))
        while task.key not in kernels:
            index = int(rng.integers(len(space.sketches)))
            candidate = space.sketches[index].candidate(space.draw(index, 1, rng)[0])
            scheduled = candidate.trace.apply_to(task.func)
            with suppress(BuildError):
                kernels[task.key] = build_kernel(scheduled, here(), name=f"k{number}")
    return kernels


def test_results_in_place_have_the_same_bits_under_any_schedules() -> None:
    num_in_place = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        graph = _residual_graph(rng)
        model = lower_model(graph)
        kernels = _random_kernels(model, rng)
        planned, plan = plan_in_place(model, kernels, here())
        num_in_place += len(planned.memory.in_place)
        key_of = {step: task.key for task in model.tasks for step in task.groups}
        separate = assemble(model, [kernels[key_of[step]] for step in model.steps], here())
        inputs = random_inputs_of(graph)
        expected = run_poisoned(model, separate, inputs)
        np.testing.assert_array_equal(run_poisoned(planned, plan, inputs)["y"], expected["y"])
    assert num_in_place >= 6
