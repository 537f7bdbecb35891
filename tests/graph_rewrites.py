"""Check a rewrite of graphs: what it returns is legal and computes the same, by the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.graph.nodes import Constant, Graph, TensorType, constant
from compiler.graph.reference import run_reference
from compiler.graph.rewrite.remove_dead import remove_dead
from compiler.graph.verify import verify_graph

_RNG = np.random.default_rng(0)


def image(*shape: int) -> TensorType:
    """Return the type of a tensor of float64: nothing is rounded to less."""
    return TensorType(shape, "float64")


def weights(*shape: int) -> Constant:
    """Return a constant of float64 with elements from 0.5 to 1.5."""
    return constant(_RNG.uniform(0.5, 1.5, shape))


def number(value: float) -> Constant:
    """Return a constant of one element."""
    return constant(np.float64(value))


def operators_after(
    graph: Graph, rewrite: Callable[[Graph], Graph], *, tolerance: float = 1e-10
) -> list[str]:
    """Return the operators of the rewritten graph without dead nodes, after the check."""
    rewritten = remove_dead(rewrite(graph))
    verify_graph(rewritten)
    inputs = {
        value.name: _RNG.normal(size=value.type.static_shape).astype(value.type.dtype)
        for value in graph.inputs
    }
    expected, results = run_reference(graph, inputs), run_reference(rewritten, inputs)
    assert results.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(results[name], array, rtol=tolerance, atol=tolerance)
    return [node.op for node in rewritten.nodes]
