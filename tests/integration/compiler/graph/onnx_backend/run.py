"""Read a case and compute it, as a user would who does what the errors advise."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Graph
from compiler.graph.read_onnx import read_onnx
from compiler.graph.verify import verify_graph
from tests.integration.compiler.graph.onnx_backend.cases import Case

Compute: TypeAlias = Callable[[Graph, Mapping[str, Array]], Mapping[str, Array]]

_PRECISION = {"float16": 2e-3, "bfloat16": 2e-2, "float8_e4m3fn": 0.13, "float8_e5m2": 0.25}
"""About two roundings of types with fewer digits than the tolerance of ONNX supposes."""


def run_case(case: Case, compute: Compute) -> str:
    """Return "passed", or "refused", "wrong" or "failed" with what was seen."""
    try:
        for inputs, expected in case.data_sets:
            names = [value.name for value in case.model.graph.input]
            named = {
                name: array
                for name, array in zip(names, inputs, strict=False)
                if isinstance(array, np.ndarray)
            }
            graph = read_fixed(case.model.SerializeToString(), named)
            given = {value.name: named[value.name] for value in graph.inputs}
            results = compute(graph, given)
            for name, array in zip(graph.output_names, expected, strict=True):
                _compare(results[name], np.asarray(array), case, name)
    except ModelError as error:
        return f"refused: {error}"
    except AssertionError as error:
        return f"wrong: {' '.join(str(error).split())[:300]}"
    except Exception:
        return f"failed: {traceback.format_exc(limit=-3)}"
    return "passed"


def read_fixed(model: bytes, inputs: Mapping[str, Array]) -> Graph:
    """Return a legal graph; an input whose value the error asks for becomes a constant."""
    fixed: dict[str, Array] = {}
    while True:
        shapes = {name: array.shape for name, array in inputs.items() if name not in fixed}
        try:
            graph = read_onnx(model, shapes=shapes, fixed_inputs=fixed)
        except ModelError as error:
            advised = re.findall(r"'([^']*)': array", error.advice)
            names = [name for name in advised if name in inputs and name not in fixed]
            if not names:
                raise
            fixed[names[0]] = inputs[names[0]]
            continue
        verify_graph(graph)
        return graph


def _compare(result: Array, expected: Array, case: Case, name: str) -> None:
    assert result.dtype == expected.dtype, f"{name} is {result.dtype}: expected {expected.dtype}"
    assert result.shape == expected.shape, f"{name} has {result.shape}: expected {expected.shape}"
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected)
        return
    precision = _PRECISION.get(result.dtype.name, 0.0)
    finite = np.abs(_wide(expected)[np.isfinite(_wide(expected))])
    # The expected results have rounding errors, too: some units in the last place of the largest.
    noise = 5e-7 * float(finite.max(initial=0)) if expected.dtype == np.float32 else 0.0
    atol = max(case.atol, precision / 8, noise)
    np.testing.assert_allclose(_wide(result), _wide(expected), max(case.rtol, precision), atol)


def _wide(array: Array) -> NDArray[np.float64]:
    return array.astype(np.float64)
