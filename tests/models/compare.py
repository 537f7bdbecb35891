"""Compare a model with onnxruntime, on random inputs."""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from compiler.graph.error import ModelError
from compiler.graph.nodes import Graph
from compiler.graph.read_onnx import read_onnx
from compiler.graph.verify import verify_graph
from tests.integration.compiler.graph.onnx_backend.run import Compute
from tests.models.model_file import ModelFile

Array = NDArray[Any]

TOLERANCE = 1e-4
"""Relative to the largest element: models have tens of layers of float32."""
DISAGREEMENTS = 10
"""How many times the difference between onnxruntime with and without optimizations is accepted.

Results of models that quantize at run time, or that amplify errors, differ by more than
`TOLERANCE` between any two orders of sums.
"""


@dataclass(frozen=True)
class Comparison:
    """What was seen of a model.

    Attributes:
        outcome: "passed", "refused", "wrong" or "failed".
        detail: The reason, or an empty string.
        nodes: The nodes of the graph.
        read_secs: The time to read the model.
        run_secs: The time to compute, or to compile and compute, its results.
        error: The largest difference, relative to the largest element.
    """

    outcome: str
    detail: str = ""
    nodes: int = 0
    read_secs: float = 0
    run_secs: float = 0
    error: float = 0


def compare(path: Path, model: ModelFile, compute: Compute) -> Comparison:
    """Read a model, compute its results on random inputs, and compare them."""
    begin = time.perf_counter()
    try:
        fixed = {name: np.asarray(value) for name, value in model.fixed.items()}
        graph = read_onnx(path, shapes=model.shapes, fixed_inputs=fixed)
        verify_graph(graph)
        read = time.perf_counter()
        inputs = random_inputs(graph)
        results = compute(graph, inputs)
    except ModelError as refusal:
        is_expected = model.refusal and model.refusal in str(refusal)
        return Comparison("refused" if is_expected else "failed", str(refusal))
    end = time.perf_counter()
    expected = _onnxruntime(path, {**inputs, **fixed}, is_optimized=True)
    plain = _onnxruntime(path, {**inputs, **fixed}, is_optimized=False)
    error, limit = 0.0, TOLERANCE
    for name, array in expected.items():
        if results[name].shape != array.shape or results[name].dtype != array.dtype:
            detail = f"{name} is {results[name].dtype} {results[name].shape}"
            return Comparison("wrong", f"{detail}: expected {array.dtype} {array.shape}")
        error = max(error, _difference(results[name], array))
        limit = max(limit, DISAGREEMENTS * _difference(plain[name], array))
    outcome = "passed" if error <= limit else "wrong"
    detail = "" if error <= limit else f"the limit is {limit:.1e}"
    return Comparison(outcome, detail, len(graph.nodes), read - begin, end - read, error)


def random_inputs(graph: Graph) -> dict[str, Array]:
    """Return an array for each input: small numbers; positive ones of integers, such as tokens."""
    inputs: dict[str, Array] = {}
    for value in graph.inputs:
        rng = np.random.default_rng(zlib.crc32(value.name.encode()))
        shape, dtype = value.type.static_shape, value.type.dtype
        is_float = "float" in dtype
        numbers = rng.standard_normal(shape) if is_float else rng.integers(1, 10, shape)
        inputs[value.name] = np.asarray(numbers).astype(dtype)
    return inputs


def _onnxruntime(
    path: Path, inputs: Mapping[str, Array], *, is_optimized: bool
) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not is_optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def _difference(a: Array, b: Array) -> float:
    """Return the largest difference relative to the largest element; infinite for NaN."""
    if not b.size:
        return 0.0
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        difference = np.where(x == y, 0, np.abs(x - y))
    largest = np.abs(y[np.isfinite(y)]).max(initial=1e-30)
    return float(np.nan_to_num(difference, nan=np.inf).max() / largest)
