"""Programs that PyTorch captured, compared with the results that it computed."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.graph.read_torch import read_torch
from compiler.graph.read_torch.registry import CONVERSIONS
from compiler.graph.reference import run_reference
from compiler.graph.verify import verify_graph
from tests.torch_programs.storage import RecordedCase, load_cases

CASES = load_cases()

# Narrow floats are rounded once here, and after each operator by PyTorch.
_TOLERANCES = {"bfloat16": 1e-2, "float16": 2e-3}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_graph_computes_what_pytorch_computed(case: RecordedCase) -> None:
    graph = read_torch(case.program)
    verify_graph(graph)
    results = run_reference(graph, case.inputs).values()
    for result, expected in zip(results, case.results, strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        tolerance = _TOLERANCES.get(result.dtype.name, 1e-5)
        wide = result.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


def test_each_conversion_has_a_program() -> None:
    used = {node.operator for case in CASES for node in case.program.nodes}
    assert set(CONVERSIONS) == used
