"""Build an operator of graphs alone, run it, and compare it with its reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler import te
from compiler.driver import build
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import find_operator
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import static_shape
from tests.targets import here


def computed(op: str, arrays: Sequence[Array], **attrs: Any) -> list[Array]:
    """Return what the built tensors of an operator compute; their types are those inferred."""
    operator = find_operator(op)
    complete = operator.complete(attrs)
    types = [TensorType(a.shape, cast(DType, a.dtype.name)) for a in arrays]
    inputs = [te.placeholder(t.static_shape, t.dtype, name=f"x{n}") for n, t in enumerate(types)]
    results = operator.apply_tensors(inputs, complete)
    kernel = build(te.create_prim_func([*inputs, *results]), here())
    inferred = operator.infer_types(types, complete)
    given = [TensorType(static_shape(r.buffer), r.dtype) for r in results]
    assert tuple(given) == inferred
    outputs = [np.empty(t.static_shape, t.dtype) for t in inferred]
    kernel(*arrays, *outputs)
    return outputs


def assert_computes_its_reference(
    op: str, arrays: Sequence[Array], *, rtol: float = 1e-5, atol: float = 1e-6, **attrs: Any
) -> list[Array]:
    """Compare the built tensors of an operator with its reference in float64; return the results.

    Integers must be equal. Floats of a type differ by a few roundings of the type.
    """
    operator = find_operator(op)
    results = computed(op, arrays, **attrs)
    wide = [a.astype(np.float64) if "float" in a.dtype.name else a for a in arrays]
    expected = operator.apply_reference(wide, operator.complete(attrs))
    for result, array in zip(results, expected, strict=True):
        if "float" not in result.dtype.name:
            np.testing.assert_array_equal(result, array.astype(result.dtype))
        else:
            np.testing.assert_allclose(result.astype(np.float64), array, rtol=rtol, atol=atol)
    return results


def onnx_results(op: str, arrays: Sequence[Array], outputs: int = 1, **attrs: Any) -> list[Array]:
    """Return what the reference of ONNX computes for one of its operators."""
    inputs, names = [f"x{n}" for n in range(len(arrays))], [f"y{n}" for n in range(outputs)]
    node = helper.make_node(op, inputs, names, **attrs)
    feeds: Any = dict(zip(inputs, arrays, strict=True))
    results: Any = ReferenceEvaluator(node).run(None, feeds)
    return list(results)
