"""Compare kernels of graph operators with their references, many operators in one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler import te
from compiler.driver import build
from compiler.graph.nodes import Attr, TensorType
from compiler.graph.operator import find_operator
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import static_shape
from tests.targets import here

Array = NDArray[Any]

_TOLERANCE: dict[str, float] = {
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
    "float32": 2e-6,
    "float64": 1e-12,
}
"""Relative and absolute: a few units in the last place of values near 1."""


@dataclass(frozen=True)
class Case:
    """An operator with its operands and attributes; None is an operand that is left out."""

    op: str
    arrays: Sequence[Array | None]
    attrs: Mapping[str, Attr] = field(default_factory=dict)


def numbers(*shape: int, dtype: str = "float32", seed: int = 0, low: float = -3) -> Array:
    """Return random numbers of a type between `low` and 3."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    values = rng.uniform(max(low, 0) if dtype.startswith("uint") else low, 3, shape)
    return np.asarray(np.rint(values * 3) if "int" in dtype else values).astype(dtype)


def check(*cases: Case, tolerance: float = 1) -> list[tuple[Array, ...]]:
    """Compare one kernel of all cases with the references, and return the references' results.

    Args:
        cases: The operators.
        tolerance: A factor of the tolerances of the types.
    """
    feeds: list[tuple[te.Tensor, Array]] = []
    results: list[list[te.Tensor]] = []
    for number, case in enumerate(cases):
        operator, inputs = find_operator(case.op), list[te.Tensor | None]()
        for position, array in enumerate(case.arrays):
            if array is None:
                inputs.append(None)
                continue
            dtype: DType = array.dtype.name  # type: ignore[assignment]
            inputs.append(te.placeholder(array.shape, dtype, name=f"x{number}_{position}"))
            feeds.append((inputs[-1], np.asarray(array, order="C")))  # type: ignore[arg-type]
        complete = operator.complete(case.attrs)
        results.append(list(operator.apply_tensors(inputs, complete)))
    flat = [tensor for several in results for tensor in several]
    program = te.create_prim_func([*(tensor for tensor, _ in feeds), *flat])
    outputs = [np.empty(static_shape(tensor.buffer), tensor.dtype) for tensor in flat]
    build(program, here())(*(array for _, array in feeds), *outputs)
    remaining = iter(outputs)
    return [
        _checked(case, [next(remaining) for _ in r], tolerance)
        for case, r in zip(cases, results, strict=True)
    ]


def _checked(case: Case, outputs: list[Array], tolerance: float) -> tuple[Array, ...]:
    operator = find_operator(case.op)
    attrs = operator.complete(case.attrs)
    with np.errstate(all="ignore"):
        expected = operator.apply_reference(case.arrays, attrs)
    types = operator.infer_types([None if a is None else type_of(a) for a in case.arrays], attrs)
    assert [type_of(a) for a in expected] == list(types), case.op
    for output, result in zip(outputs, expected, strict=True):
        assert output.shape == result.shape, case.op
        error = tolerance * _TOLERANCE.get(result.dtype.name, 0)
        np.testing.assert_allclose(
            output.astype(np.float64) if error else output,
            result.astype(np.float64) if error else result,
            rtol=error,
            atol=error,
            err_msg=f"{case.op} {case.attrs}",
        )
    return expected


def type_of(array: Array) -> TensorType:
    """Return the type of an array."""
    return TensorType(array.shape, array.dtype.name)  # type: ignore[arg-type]
