"""Operators applied to symbolic integers: those with which models compute shapes.

Each takes arrays of NumPy objects, `int` or `Expr`, and returns such an array. Operators that need
numbers refuse symbolic extents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from compiler.graph import extents
from compiler.graph.error import ModelError
from compiler.graph.extents import show_shape
from compiler.graph.nodes import Array, Constant, constant
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.symbolic import FIX_AXES, Result, SymbolicInts, ints_operand

_Operator: TypeAlias = Callable[[OnnxCall, list[Array]], Array]


def is_symbolic(call: OnnxCall) -> bool:
    """Return whether an operator is applied here: an operand is symbolic, and all are known."""
    return (
        call.op_type in _OPERATORS
        and any(isinstance(operand, SymbolicInts) for operand in call.inputs)
        and all(x is None or isinstance(x, SymbolicInts | Constant) for x in call.inputs)
    )


def apply_symbolic(call: OnnxCall) -> Result:
    """Return the result of an operator on symbolic integers.

    Raises:
        ModelError: If the operands do not fit, or the result is not known.
    """
    arrays = [_objects(operand) for operand in call.inputs if operand is not None]
    try:
        result = _OPERATORS[call.op_type](call, arrays)
    except (IndexError, ValueError, TypeError) as error:
        raise ModelError(f"the operands do not fit: {error}") from None
    array = np.asarray(result, dtype=object)
    if array.size and all(isinstance(element, bool) for element in array.reshape(-1)):
        return constant(array.astype(np.bool_), call.name)
    dtype = call.dtype_attr("to") or call.type(1 if call.op_type == "Where" else 0).dtype
    return ints_operand(array, call.name, dtype)


def _objects(operand: Result) -> Array:
    if isinstance(operand, SymbolicInts):
        return operand.array
    assert isinstance(operand, Constant), "the caller checks it"
    return operand.elements.astype(object)


def _elementwise(function: Callable[[extents.Extent, extents.Extent], object]) -> _Operator:
    def apply(_: OnnxCall, arrays: list[Array]) -> Array:
        a, b = arrays
        return np.asarray(np.frompyfunc(function, 2, 1)(a, b), dtype=object)

    return apply


def _quotient(a: extents.Extent, b: extents.Extent) -> extents.Extent:
    # ONNX rounds towards zero, which is the same for extents: they are not negative.
    if not isinstance(b, int) or b <= 0:
        raise ModelError(f"the quotient {show_shape((a,))} / {show_shape((b,))} is not known")
    return extents.floor_divide(a, b)


def _equal(a: extents.Extent, b: extents.Extent) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if any(isinstance(x, int) and x < 0 for x in (a, b)):
        return False  # an extent is never negative
    if a == b:
        return True
    raise ModelError(
        f"whether {show_shape((a,))} equals {show_shape((b,))} depends on symbolic axes",
        advice=FIX_AXES,
    )


def _gather(call: OnnxCall, arrays: list[Array]) -> Array:
    data, indices = arrays
    taken = np.take(data, indices.astype(np.int64), axis=call.int_attr("axis", 0))
    return np.asarray(taken, dtype=object)


def _concat(call: OnnxCall, arrays: list[Array]) -> Array:
    return np.concatenate(arrays, axis=call.int_attr("axis"))


def _slice(call: OnnxCall, arrays: list[Array]) -> Array:
    starts, ends = call.ints("starts", 1), call.ints("ends", 2)
    assert starts is not None, "the schema says so"
    assert ends is not None, "the schema says so"
    axes = call.ints("axes", 3, range(len(starts)))
    steps = call.ints("steps", 4, [1] * len(starts))
    data = arrays[0]
    for axis, start, end, step in zip(axes or (), starts, ends, steps or (), strict=True):
        # Far ends stand for "to the end"; backwards, NumPy says that with None.
        stop = None if step < 0 and end < -data.shape[axis] else end
        position = [slice(None)] * data.ndim
        position[axis] = slice(start, stop, step)
        data = data[tuple(position)]
    return data


def _unsqueeze(call: OnnxCall, arrays: list[Array]) -> Array:
    return np.expand_dims(arrays[0], call.ints("axes", 1) or ())


def _squeeze(call: OnnxCall, arrays: list[Array]) -> Array:
    axes = call.ints("axes", 1)
    return np.asarray(np.squeeze(arrays[0], axes), dtype=object)


def _reshape(call: OnnxCall, arrays: list[Array]) -> Array:
    return arrays[0].reshape(call.ints("shape", 1) or ())


def _cast(call: OnnxCall, arrays: list[Array]) -> Array:
    dtype = call.dtype_attr("to")
    if dtype not in ("int32", "int64"):
        raise ModelError(
            f"symbolic extents are converted to {dtype}",
            advice=FIX_AXES,
        )
    return arrays[0]


def _where(_: OnnxCall, arrays: list[Array]) -> Array:
    condition, a, b = arrays
    return np.where(condition.astype(np.bool_), a, b)


def _product(call: OnnxCall, arrays: list[Array]) -> Array:
    axes = call.ints("axes", 1)
    if axes is not None and arrays[0].ndim != 1:
        raise ModelError("a product of symbolic extents along one of several axes")
    shape = (1,) if call.int_attr("keepdims", 1) else ()
    return np.asarray(extents.product(arrays[0].reshape(-1)), dtype=object).reshape(shape)


def _same(_: OnnxCall, arrays: list[Array]) -> Array:
    return arrays[0]


_OPERATORS: dict[str, _Operator] = {
    "Add": _elementwise(extents.add),
    "Cast": _cast,
    "Concat": _concat,
    "Div": _elementwise(_quotient),
    "Equal": _elementwise(_equal),
    "Gather": _gather,
    "Identity": _same,
    "Mul": _elementwise(extents.multiply),
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _elementwise(extents.subtract),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
