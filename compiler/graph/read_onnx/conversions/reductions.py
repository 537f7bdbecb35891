"""Reductions, positions of extremes, and cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from compiler.graph.nodes import Operand
from compiler.graph.operators.axes import check_axes
from compiler.graph.operators.reductions import reduced_shape
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import Conversion, onnx_operator
from compiler.ir.core.dtypes import DType, is_float, is_narrow_float, smallest_and_largest


def _axes(call: OnnxCall) -> tuple[int, ...]:
    """Return the axes that are reduced; without any, all of them, unless the model says none."""
    rank = call.type(0).rank
    axes = call.ints("axes", 1, ())
    if axes:
        return check_axes(call.op_type, axes, rank)
    return () if call.int_attr("noop_with_empty_axes", 0) else tuple(range(rank))


def _reduced(call: OnnxCall, op: str, x: Operand) -> Operand:
    axes, keepdims = _axes(call), bool(call.int_attr("keepdims", 1))
    if any(x.type.shape[axis] == 0 for axis in axes):
        shape = reduced_shape(x.type.shape, axes, keepdims)
        return call.add("broadcast_to", call.like(x, _of_nothing(op, x.type.dtype)), shape=shape)
    return call.add(op, x, axis=axes, keepdims=keepdims)


def _of_nothing(op: str, dtype: DType) -> float:
    """Return the result of a reduction of no elements."""
    match op:
        case "sum":
            return 0
        case "prod":
            return 1
        case "mean":
            return math.nan if is_float(dtype) else 0
        case "min":
            return math.inf if is_float(dtype) else smallest_and_largest(dtype)[1]
        case _:
            return -math.inf if is_float(dtype) else smallest_and_largest(dtype)[0]


def _plain(op: str) -> Conversion:
    def convert(call: OnnxCall) -> Operand:
        x = call.operand(0)
        if x.type.dtype != "bool":
            return _reduced(call, op, x)
        number = call.add("astype", x, dtype="uint8")
        return call.add("astype", _reduced(call, op, number), dtype="bool")

    return convert


for _op_type, _op in {
    "ReduceSum": "sum",
    "ReduceMean": "mean",
    "ReduceProd": "prod",
    "ReduceMax": "max",
    "ReduceMin": "min",
}.items():
    onnx_operator(_op_type)(_plain(_op))


def _wide(convert: Callable[[OnnxCall, Operand], Operand], *, needs_float: bool) -> Conversion:
    """Return a conversion of several steps, of which only the last one is rounded to the type."""

    def wide(call: OnnxCall) -> Operand:
        x = call.operand(0)
        dtype = x.type.dtype
        if is_narrow_float(dtype):
            x = call.add("astype", x, dtype="float32")
        elif needs_float and not is_float(dtype):
            x = call.add("astype", x, dtype="float64")
        result = convert(call, x)
        return result if x.type.dtype == dtype else call.add("astype", result, dtype=dtype)

    return wide


def _l1(call: OnnxCall, x: Operand) -> Operand:
    return _reduced(call, "sum", call.add("abs", x))


def _sum_square(call: OnnxCall, x: Operand) -> Operand:
    return _reduced(call, "sum", call.add("multiply", x, x))


def _l2(call: OnnxCall, x: Operand) -> Operand:
    return call.add("sqrt", _sum_square(call, x))


def _log_sum(call: OnnxCall, x: Operand) -> Operand:
    return call.add("log", _reduced(call, "sum", x))


def _log_sum_exp(call: OnnxCall, x: Operand) -> Operand:
    return _reduced(call, "logsumexp", x)


onnx_operator("ReduceL1")(_wide(_l1, needs_float=False))
onnx_operator("ReduceSumSquare")(_wide(_sum_square, needs_float=False))
onnx_operator("ReduceL2")(_wide(_l2, needs_float=True))
onnx_operator("ReduceLogSum")(_wide(_log_sum, needs_float=True))
onnx_operator("ReduceLogSumExp")(_wide(_log_sum_exp, needs_float=True))


@onnx_operator("ArgMax", "ArgMin")
def _position(call: OnnxCall) -> Operand:
    return call.add(
        call.op_type.lower(),
        call.operand(0),
        axis=call.int_attr("axis", 0),
        keepdims=bool(call.int_attr("keepdims", 1)),
        select_last_index=bool(call.int_attr("select_last_index", 0)),
    )


@onnx_operator("CumSum", "CumProd")
def _cumulative(call: OnnxCall) -> Operand:
    return call.add(
        call.op_type.lower(),
        call.operand(0),
        axis=int(np.reshape(call.constant_of(1, "the axis"), ())),
        exclusive=bool(call.int_attr("exclusive", 0)),
        reverse=bool(call.int_attr("reverse", 0)),
    )
