"""Branches and loops: they are decided and unrolled while the model is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import ValueInfoProto

from compiler.graph.error import ModelError
from compiler.graph.extents import show_shape
from compiler.graph.nodes import Array, Constant, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.dtypes import dtype_of
from compiler.graph.read_onnx.limits import MAX_TRIPS
from compiler.graph.read_onnx.registry import onnx_operator
from compiler.graph.read_onnx.symbolic import FIX_AXES, Result, SymbolicInts, TensorSequence
from compiler.graph.read_onnx.tensors import check_shape


@onnx_operator("If")
def _if(call: OnnxCall) -> Sequence[Result]:
    condition = call.operand(0)
    if condition.type.num_elements != 1:
        raise ModelError(
            f"the condition has the shape {show_shape(condition.type.shape)}: expected one element"
        )
    if isinstance(condition, Constant):
        branch = "then_branch" if condition.elements.item() else "else_branch"
        return call.read_graph(call.graph_attr(branch), ())
    then = call.read_graph(call.graph_attr("then_branch"), ())
    other = call.read_graph(call.graph_attr("else_branch"), ())
    if len(then) != len(other):
        raise ModelError(f"the branches have {len(then)} and {len(other)} results")
    scalar = call.add("reshape", condition, shape=())
    return [_selected(call, scalar, a, b) for a, b in zip(then, other, strict=True)]


def _selected(call: OnnxCall, condition: Operand, a: Result, b: Result) -> Operand:
    advice = call.emitter.advice(condition)
    unknown = "the condition is computed at run time, and the branches return"
    if isinstance(a, TensorSequence) or isinstance(b, TensorSequence):
        raise ModelError(f"{unknown} sequences", advice=advice)
    if isinstance(a, SymbolicInts) or isinstance(b, SymbolicInts) or a.type != b.type:
        raise ModelError(f"{unknown} {a.type} and {b.type}", advice=advice)
    return call.add("where", condition, a, b)


@onnx_operator("Loop")
def _loop(call: OnnxCall) -> Sequence[Result]:
    """Unroll a loop; conditions that follow from constants may end it."""
    body = call.graph_attr("body")
    num_carried = len(call.inputs) - 2
    carried = [_present(call, position) for position in range(2, len(call.inputs))]
    max_trips = int(call.scalar_of(0, "the trip count").item()) if call.has(0) else MAX_TRIPS + 1
    proceeds = call.operand(1) if call.has(1) else call.constant(np.True_)
    scanned: list[list[Operand]] = [[] for _ in range(len(body.output) - 1 - num_carried)]
    trip = 0
    while trip < max_trips and _is_true(call, proceeds):
        _check_trips(trip + 1)
        outputs = call.read_graph(body, (call.constant(np.int64(trip)), proceeds, *carried))
        proceeds, carried = _known(outputs[0]), outputs[1 : 1 + num_carried]
        for results, result in zip(scanned, outputs[1 + num_carried :], strict=True):
            results.append(_known(result))
        trip += 1
    declared = body.output[1 + num_carried :]
    joined = zip(scanned, declared, strict=True)
    return [*carried, *(_stacked(call, results, 0, value) for results, value in joined)]


@onnx_operator("Scan")
def _scan(call: OnnxCall) -> Sequence[Result]:
    """Unroll a scan over slices of its operands."""
    if call.opset < 9:
        raise ModelError("Scan of version 8 is not supported", advice="convert it to version 9")
    body, num_scanned = call.graph_attr("body"), call.int_attr("num_scan_inputs")
    num_states = len(call.inputs) - num_scanned
    num_results = len(body.output) - num_states
    if num_scanned < 1 or num_states < 0 or num_results < 0:
        raise ModelError(f"{num_scanned} of {len(call.inputs)} operands are scanned")
    states = [_present(call, position) for position in range(num_states)]
    slices = _slices(call, num_states, num_scanned)
    backwards = call.ints_attr("scan_output_directions", [0] * num_results)
    axes = call.ints_attr("scan_output_axes", [0] * num_results)
    scanned: list[list[Operand]] = [[] for _ in range(num_results)]
    for operands in slices:
        outputs = call.read_graph(body, (*states, *operands))
        states = outputs[:num_states]
        for results, result in zip(scanned, outputs[num_states:], strict=True):
            results.append(_known(result))
    stacked = zip(scanned, axes, backwards, body.output[num_states:], strict=True)
    return [
        *states,
        *(
            _stacked(call, results[::-1] if back else results, axis, value)
            for results, axis, back, value in stacked
        ),
    ]


def _slices(call: OnnxCall, first: int, num_scanned: int) -> list[tuple[Operand, ...]]:
    """Return the operands of each step."""
    axes = call.ints_attr("scan_input_axes", [0] * num_scanned)
    backwards = call.ints_attr("scan_input_directions", [0] * num_scanned)
    columns = [
        _elements(call, call.operand(first + k), axis, back)
        for k, (axis, back) in enumerate(zip(axes, backwards, strict=True))
    ]
    if len({len(column) for column in columns}) != 1:
        raise ModelError(f"operands of {[len(column) for column in columns]} slices are scanned")
    return list(zip(*columns, strict=True))


def _elements(call: OnnxCall, operand: Operand, axis: int, back: int) -> list[Operand]:
    """Return the slices of a tensor along an axis, without that axis."""
    shape = operand.type.shape
    if not -len(shape) <= axis < len(shape):
        raise ModelError(f"axis {axis} of the shape {show_shape(shape)} is scanned")
    axis %= len(shape)
    num = shape[axis]
    if not isinstance(num, int):
        raise ModelError(f"the axis {show_shape((num,))} is scanned", advice=FIX_AXES)
    _check_trips(num)
    parts = [
        call.add("strided_slice", operand, axes=(axis,), begin=(k,), end=(k + 1,), strides=(1,))
        for k in range(num)
    ]
    squeezed = [call.add("squeeze", part, axis=(axis,)) for part in parts]
    return squeezed[::-1] if back else squeezed


def _stacked(
    call: OnnxCall, results: Sequence[Operand], axis: int, declared: ValueInfoProto
) -> Operand:
    """Return the results of all iterations, joined along a new axis."""
    if not results:
        return call.constant(_no_iterations(declared))
    rank = results[0].type.rank + 1
    if not -rank <= axis < rank:
        raise ModelError(f"results of rank {rank - 1} are joined along axis {axis}")
    axis %= rank
    expanded = [call.add("expand_dims", result, axis=(axis,)) for result in results]
    return call.add("concat", *expanded, axis=axis)


def _no_iterations(declared: ValueInfoProto) -> Array:
    """Return what a loop without iterations collects: no elements of the declared shape."""
    tensor = declared.type.tensor_type
    if not all(dim.HasField("dim_value") for dim in tensor.shape.dim):
        raise ModelError(f"a loop without iterations returns {declared.name} of unknown shape")
    shape = (0, *(dim.dim_value for dim in tensor.shape.dim))
    check_shape(shape, declared.name)
    return np.empty(shape, dtype_of(tensor.elem_type))


def _present(call: OnnxCall, position: int) -> Result:
    value = call.inputs[position]
    if value is None:
        raise ModelError(f"operand {position} is missing")
    return value


def _known(result: Result) -> Operand:
    if isinstance(result, SymbolicInts | TensorSequence):
        raise result.refusal("a result of the body")
    return result


def _is_true(call: OnnxCall, condition: Operand) -> bool:
    if not isinstance(condition, Constant):
        raise ModelError(
            "the condition of the loop is computed at run time",
            advice=call.emitter.advice(condition),
        )
    if condition.elements.size != 1:
        raise ModelError(f"the condition has the shape {show_shape(condition.type.shape)}")
    return bool(condition.elements.item())


def _check_trips(trips: int) -> None:
    if trips > MAX_TRIPS:
        raise ModelError(f"a loop of more than {MAX_TRIPS} iterations is not unrolled")
