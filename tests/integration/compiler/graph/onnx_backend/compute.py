"""The ways to compute a graph: by its reference, by kernels of default schedules, or compiled."""

from __future__ import annotations

from collections.abc import Mapping

from compiler.graph.nodes import Array, Graph
from compiler.graph.reference import run_reference
from compiler.package.lower_model import lower_model
from compiler.package.stepped_model import SteppedModel
from loopwright.models.compiling import compile
from tests.integration.compiler.graph.onnx_backend.run import Compute
from tests.plan_runner import default_plan
from tests.targets import here


def by_reference(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of the reference in the model's types, in which ONNX rounds, too.

    In float64, a quotient that is an integer and a half rounds to another integer.
    """
    return run_reference(graph, inputs, wide=False)


def by_kernels(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a lowered model whose programs have their default schedules."""
    model = SteppedModel(default_plan(lower_model(graph), here()))
    calls, results = model.bind(inputs)
    for call in calls:
        call()
    return results


def compiled(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of what `lw.compile` returns to users."""
    return compile(graph, target=here()).run(inputs)


COMPUTE: dict[str, Compute] = {
    "reference": by_reference,
    "kernels": by_kernels,
    "compile": compiled,
}
"""All ways by their names."""
