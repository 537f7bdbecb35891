from collections.abc import Callable

import numpy as np
import pytest

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Constant, Graph, TensorType, constant
from compiler.graph.reference import run_reference
from compiler.graph.rewrite.fold_constants import fold_constants
from compiler.graph.rewrite.remove_dead import remove_dead
from compiler.graph.rewrite.share_common import share_common
from compiler.graph.verify import verify_graph

_RNG = np.random.default_rng(0)
_X = TensorType((4, 8), "float32")


def _weights(*shape: int) -> Constant:
    return constant(_RNG.random(shape, np.float32))


def _layers() -> Graph:
    """Return a graph with a dead node, two equal nodes, and nodes of constants."""
    builder = GraphBuilder("layers")
    x = builder.input("x", _X)
    weights = builder.add("multiply", _weights(8, 8), constant(np.float32(0.5)), name="scaled")
    first = builder.add("matmul", x, weights, name="fc")
    again = builder.add("matmul", x, weights, name="fc_again")
    builder.add("subtract", first, x, name="unused")
    return builder.finish([builder.add("add", first, again), weights], ["y", "weights"])


def _same(graph: Graph, rewrite: Callable[[Graph], Graph]) -> Graph:
    """Return the rewritten graph, which computes what the graph computes."""
    rewritten = rewrite(graph)
    verify_graph(rewritten)
    inputs = {v.name: _RNG.random(v.type.static_shape, np.float32) for v in graph.inputs}
    expected, results = run_reference(graph, inputs), run_reference(rewritten, inputs)
    assert results.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(results[name], array, rtol=1e-6, atol=1e-6)
    return rewritten


def test_nodes_without_an_effect_are_removed() -> None:
    names = [node.name for node in _same(_layers(), remove_dead).nodes]
    assert names == ["scaled", "fc", "fc_again", ""]


def test_equal_nodes_become_one() -> None:
    names = [node.name for node in _same(_layers(), share_common).nodes]
    assert names == ["scaled", "fc", "unused", ""]


def test_nodes_that_differ_in_the_sign_of_a_zero_stay_two() -> None:
    builder = GraphBuilder()
    x = builder.input("x", _X)
    zeros = [constant(np.float32(zero)) for zero in (0.0, -0.0)]
    outputs = [builder.add("multiply", x, zero) for zero in zeros]
    assert len(share_common(builder.finish(outputs)).nodes) == 2


def test_nodes_of_constants_become_constants_of_their_types() -> None:
    folded = _same(_layers(), fold_constants)
    assert [node.op for node in folded.nodes] == ["matmul", "matmul", "subtract", "add"]
    assert folded.outputs[1].type == TensorType((8, 8), "float32")


def test_what_grows_much_is_not_folded() -> None:
    builder = GraphBuilder()
    rows, columns = constant(np.ones((1024, 1), np.float32)), constant(np.ones(1024, np.float32))
    assert len(fold_constants(builder.finish([builder.add("add", rows, columns)])).nodes) == 1


@pytest.mark.parametrize("rewrite", [fold_constants, share_common, remove_dead])
def test_a_graph_with_nothing_to_do_is_unchanged(rewrite: Callable[[Graph], Graph]) -> None:
    builder = GraphBuilder()
    x = builder.input("x", _X)
    graph = builder.finish([builder.add("matmul", x, _weights(8, 3))])
    assert rewrite(graph).nodes == graph.nodes
