"""Results in the memory of operands: which steps, and the same bits as in separate memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compiler.executor import load
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Graph, TensorType, TensorValue, constant
from compiler.graph.reference import run_reference
from compiler.package.assemble import LoweredModel, assemble
from compiler.package.build_package import build_package, save_package
from compiler.package.lower_model import lower_model
from compiler.package.plan import ModelPlan
from tests.plan_runner import (
    compile_and_compare,
    default_kernels,
    plan_in_place,
    random_inputs_of,
    run_poisoned,
)
from tests.targets import here

_BYTES = 8 * 8 * 4


class _Network:
    """A graph that grows by kernels: a softmax, or the product of a new input, plus a value."""

    def __init__(self) -> None:
        self.builder = GraphBuilder("network")
        self.num_inputs = 0
        self.x = self.input()

    def input(self, *shape: int) -> TensorValue:
        self.num_inputs += 1
        return self.builder.input(f"x{self.num_inputs}", TensorType(shape or (8, 8), "float32"))

    def softmax(self, x: TensorValue) -> TensorValue:
        return self.builder.add("nn.softmax", x)

    def plus(self, value: TensorValue, x: TensorValue | None = None) -> TensorValue:
        """Return the sum of a product and a value: one kernel."""
        columns = value.type.static_shape[-1]
        weights = np.linspace(-1, 1, 8 * columns, dtype=np.float32).reshape(8, columns)
        product = self.builder.add("matmul", x or self.input(), constant(weights))
        return self.builder.add("add", product, value)

    def graph(self, result: TensorValue) -> Graph:
        return self.builder.finish([result], ["y"])


def _planned(graph: Graph) -> tuple[LoweredModel, ModelPlan]:
    """Return a model with results in place; check that its results keep their bits."""
    compile_and_compare(graph, here())
    model = lower_model(graph)
    kernels = default_kernels(model, here())
    planned, plan = plan_in_place(model, kernels, here())
    key_of = {step: task.key for task in model.tasks for step in task.groups}
    separate = assemble(model, [kernels[key_of[step]] for step in model.steps], here())
    inputs = random_inputs_of(graph)
    expected = run_poisoned(model, separate, inputs)
    for name, array in run_poisoned(planned, plan, inputs).items():
        np.testing.assert_array_equal(array, expected[name])
    assert separate.arena_bytes == plan.arena_bytes + planned.memory.saved_bytes
    return planned, plan


def _sum(n: _Network) -> TensorValue:
    return n.softmax(n.plus(n.softmax(n.x)))


def _chain(n: _Network) -> TensorValue:
    total = n.softmax(n.x)
    for _ in range(4):
        total = n.plus(total, n.softmax(total))
    return n.softmax(total)


def _view(n: _Network) -> TensorValue:
    flat = n.builder.add("reshape", n.softmax(n.x), shape=(1, 64))
    return n.softmax(n.plus(flat, n.input(1, 8)))


def _read_later(n: _Network) -> TensorValue:
    value = n.softmax(n.x)
    return n.softmax(n.plus(value, n.plus(value)))


def _join(n: _Network) -> TensorValue:
    both = n.builder.add("concat", n.softmax(n.x), n.softmax(n.input()))
    return n.softmax(n.plus(both, n.input(16, 8)))


@pytest.mark.parametrize(
    ("build", "num_in_place", "num_arrays"),
    [(_sum, 1, 1), (_chain, 4, 2), (_view, 1, 1), (_read_later, 1, 2), (_join, 1, 2)],
)
def test_a_result_is_written_over_an_operand_that_dies(
    build: Callable[[_Network], TensorValue], num_in_place: int, num_arrays: int
) -> None:
    network = _Network()
    model, plan = _planned(network.graph(build(network)))
    assert len(model.memory.in_place) == num_in_place
    assert plan.arena_bytes == model.memory.lower_bound_bytes == num_arrays * _BYTES
    assert sum(len(plan.kernels[s.kernel].in_place) for s in plan.steps) == num_in_place
    assert all(len({*step.arguments}) == len(step.arguments) for step in plan.steps)


def _transposed(n: _Network) -> TensorValue:
    return n.softmax(n.plus(n.builder.add("permute_dims", n.softmax(n.x), axes=(1, 0))))


def _read_by_two_blocks(n: _Network) -> TensorValue:
    value = n.softmax(n.x)
    return n.softmax(n.plus(value, value))


def _two_views(n: _Network) -> TensorValue:
    value = n.softmax(n.x)
    flat = n.builder.add("reshape", value, shape=(1, 64))
    rows = n.builder.add_all("split", value, indices_or_sections=8)
    return n.softmax(n.plus(flat, rows[3]))


def _of_the_caller(n: _Network) -> TensorValue:
    return n.plus(n.softmax(n.x))


def _input(n: _Network) -> TensorValue:
    return n.softmax(n.plus(n.x, n.softmax(n.x)))


@pytest.mark.parametrize(
    "build", [_transposed, _read_by_two_blocks, _two_views, _of_the_caller, _input]
)
def test_other_results_have_memory_of_their_own(
    build: Callable[[_Network], TensorValue],
) -> None:
    network = _Network()
    model, _ = _planned(network.graph(build(network)))
    assert not model.memory.in_place
    assert not model.memory.saved_bytes


def test_steps_of_one_program_call_different_kernels() -> None:
    network = _Network()
    _, plan = _planned(network.graph(_read_later(network)))
    kernels = [plan.kernels[step.kernel] for step in plan.steps]
    (over,) = (kernel for kernel in kernels if kernel.in_place)
    (same,) = (kernel for kernel in kernels if kernel.task == over.task and kernel is not over)
    assert len(same.params) == len(over.params) + 1


def test_a_package_with_results_in_place_runs_again(tmp_path: Path) -> None:
    network = _Network()
    graph = network.graph(_chain(network))
    _, plan = _planned(graph)
    inputs = random_inputs_of(graph)
    save_package(build_package(plan), tmp_path / "network.lwm")
    result = load(tmp_path / "network.lwm").run(inputs)["y"]
    np.testing.assert_allclose(result, run_reference(graph, inputs)["y"], rtol=1e-5)
