"""Random graphs, compiled as whole models, compute what their reference computes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.graph.rewrite.simplify import simplify
from compiler.graph.verify import verify_graph
from tests.plan_runner import compile_and_compare, same_results
from tests.random_graphs import random_graph
from tests.targets import here

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
