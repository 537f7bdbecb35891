from __future__ import annotations

import numpy as np
import pytest

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.fusion.fuse import fuse
from compiler.graph.lower import LoweredGroup, lower_copy, lower_group
from compiler.graph.nodes import Constant, Graph, TensorType, constant
from compiler.graph.tasks import model_tasks
from compiler.ir.analysis.constant_params import constant_params

_RNG = np.random.default_rng(0)


def _weights(*shape: int) -> Constant:
    return constant(_RNG.random(shape, np.float32))


def _network(*scales: float) -> Graph:
    """Return layers of one shape with different weights; a layer for each scale."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((4, 8), "float32"))
    for scale in scales:
        product = builder.add("add", builder.add("matmul", x, _weights(8, 8)), _weights(8))
        x = builder.add("multiply", product, constant(np.float32(scale)))
    return builder.finish([x])


def _lowered(graph: Graph) -> list[LoweredGroup]:
    return [lower_group(group) for group in fuse(graph).groups]


def test_equal_layers_are_one_task_with_their_number_as_weight() -> None:
    [task] = model_tasks(_lowered(_network(0.5, 0.5, 0.5)))
    assert task.weight == 3
    assert len({group.operands[1] for group in task.groups}) == 3


def test_weights_are_constant_parameters_and_numbers_are_parts_of_the_program() -> None:
    groups = _lowered(_network(0.5, 0.25))
    assert len(model_tasks(groups)) == 2
    [matrix, bias] = constant_params(groups[0].func)
    assert [matrix.name, bias.name] == ["p1", "p2"]
    assert [buffer.name for buffer in groups[0].func.buffers] == ["p0", "p1", "p2", "multiply"]


def test_a_weight_of_one_element_of_a_product_stays_a_parameter() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((4, 1), "float32"))
    [lowered] = _lowered(builder.finish([builder.add("matmul", x, _weights(1, 1))]))
    assert len(lowered.operands) == 2


def test_a_group_of_several_results_has_them_as_parameters() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((4, 8), "float32"))
    parts = builder.add_all("split", x, indices_or_sections=2, axis=1)
    [lowered] = _lowered(builder.finish(parts))
    assert lowered.results == parts
    assert len(lowered.func.buffers) == 3


def test_a_copy_has_one_dimension() -> None:
    func = lower_copy(TensorType((2, 3), "int64"))
    assert [len(buffer.shape) for buffer in func.buffers] == [1, 1]


def test_an_operator_that_has_no_program_is_refused_with_its_node() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((4,), "float32"))
    y = builder.add(
        "call_dps_packed", x, name="call", func="absent", results=(TensorType((4,), "float32"),)
    )
    graph = builder.finish([y])
    with pytest.raises(ModelError, match="call_dps_packed 'call'"):
        _lowered(graph)
