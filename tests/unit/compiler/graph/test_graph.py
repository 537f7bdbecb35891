from typing import Any

import numpy as np
import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.extents import symbol
from compiler.graph.nodes import Graph, TensorType, constant
from compiler.graph.reference import run_reference
from compiler.graph.verify import verify_graph


def _f32(*shape: Any) -> TensorType:
    return TensorType(shape, "float32")


def _linear(rows: Any = 4) -> Graph:
    rng = np.random.default_rng(0)
    builder = GraphBuilder("linear")
    x = builder.input("x", _f32(rows, 8))
    product = builder.add("matmul", x, constant(rng.random((8, 3), np.float32)), name="fc")
    total = builder.add("add", product, constant(rng.random(3, np.float32)), name="bias")
    return builder.finish([total], ["y"])


def test_a_built_graph_is_legal_and_computes_what_numpy_computes() -> None:
    graph = _linear()
    verify_graph(graph)
    x = np.random.default_rng(1).random((4, 8), np.float32)
    weights, bias = (c.elements for c in graph.constants())
    np.testing.assert_allclose(run_reference(graph, {"x": x})["y"], x @ weights + bias, rtol=1e-6)


def test_symbolic_extents_pass_through_inference() -> None:
    rows = symbol("rows")
    assert _linear(rows).outputs[0].type.shape == (rows, 3)


def test_an_operator_refuses_types_that_do_not_fit_and_names_the_node() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _f32(4, 8))
    with pytest.raises(ModelError, match=r"matmul 'fc': .*\(4, 8\).*\(7, 3\)"):
        builder.add("matmul", x, constant(np.zeros((7, 3), np.float32)), name="fc")


def test_messages_name_symbolic_extents() -> None:
    builder, rows = GraphBuilder(), symbol("rows")
    x = builder.input("x", _f32(rows, 8))
    with pytest.raises(ModelError, match=r"matmul of float32 \(rows, 8\) and float32 \(7, 3\)"):
        builder.add("matmul", x, constant(np.zeros((7, 3), np.float32)))


def test_the_verifier_refuses_a_value_that_is_read_before_it_is_made() -> None:
    graph = _linear()
    swapped = Graph(graph.name, graph.inputs, graph.nodes[::-1], graph.outputs, graph.output_names)
    with pytest.raises(ModelError, match="fc is read before it is made"):
        verify_graph(swapped)


def test_constants_are_compared_by_their_elements() -> None:
    first, second = constant(np.arange(4), "a"), constant(np.arange(4), "b")
    assert first == second
    assert first != constant(np.arange(4).reshape(2, 2))
    with pytest.raises(ValueError, match="read-only"):
        first.elements[0] = 7
