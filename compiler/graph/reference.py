"""Compute a graph by NumPy, node by node: what compiled models are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Constant, Graph, Node, Operand, TensorValue
from compiler.graph.operator import find_operator


def run_reference(
    graph: Graph, inputs: Mapping[str, Array], *, wide: bool = True
) -> dict[str, Array]:
    """Return the results of a graph by their names.

    Args:
        graph: A legal graph of static types, with the elements of its constants.
        inputs: An array for each input, by name.
        wide: Whether floats of all types are computed in float64, so that the result has no
            rounding errors of the model's own types; results come back in these types.

    Raises:
        ModelError: If an input is missing or does not have the shape and type of the graph.
    """
    arrays: dict[TensorValue, Array] = {}
    for value in graph.inputs:
        arrays[value] = _widened(_checked(value, inputs), wide)
    last_use = _last_uses(graph)
    for position, node in enumerate(graph.nodes):
        for value, array in zip(node.outputs, _run(node, arrays, wide), strict=True):
            arrays[value] = array
        for operand in node.operands:
            if isinstance(operand, TensorValue) and last_use[operand] == position:
                arrays.pop(operand, None)
    return {
        name: _array(output, arrays, wide).astype(output.type.dtype)
        for name, output in zip(graph.output_names, graph.outputs, strict=True)
    }


def _run(node: Node, arrays: Mapping[TensorValue, Array], wide: bool) -> list[Array]:
    operands = [None if x is None else _array(x, arrays, wide) for x in node.inputs]
    with np.errstate(all="ignore"):  # NaN and infinity are results like others
        results = find_operator(node.op).apply_reference(operands, node.attrs)
    return [_as_declared(r, v, wide) for r, v in zip(results, node.outputs, strict=True)]


def _as_declared(result: Array, value: TensorValue, wide: bool) -> Array:
    """Return a result in its declared type, or in float64 instead of a float."""
    array = np.asarray(result)
    assert array.shape == value.type.shape, (
        f"{value.name}: the reference has {array.shape}, not {value.type.shape}"
    )
    if wide and _is_float(value.type.dtype):
        return array.astype(np.float64)
    return array.astype(value.type.dtype)


def _array(operand: Operand, arrays: Mapping[TensorValue, Array], wide: bool) -> Array:
    if isinstance(operand, Constant):
        return _widened(operand.elements, wide)
    return arrays[operand]


def _widened(array: Array, wide: bool) -> Array:
    return array.astype(np.float64) if wide and _is_float(array.dtype.name) else array


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _checked(value: TensorValue, inputs: Mapping[str, Array]) -> Array:
    if value.name not in inputs:
        raise ModelError(f"input {value.name} is missing: expected {value.type}")
    array = np.asarray(inputs[value.name])
    if array.shape != value.type.shape or array.dtype.name != value.type.dtype:
        raise ModelError(
            f"input {value.name} is {array.dtype.name} {array.shape}:"
            f" expected {value.type.dtype} {value.type.shape}"
        )
    return array


def _last_uses(graph: Graph) -> dict[TensorValue, int]:
    """Return the position of the node that reads a value last; results are never dropped."""
    uses: dict[TensorValue, int] = {}
    for position, node in enumerate(graph.nodes):
        for operand in _values(node.inputs):
            uses[operand] = position
    return {**uses, **dict.fromkeys(_values(graph.outputs), len(graph.nodes))}


def _values(operands: Sequence[Operand | None]) -> list[TensorValue]:
    return [operand for operand in operands if isinstance(operand, TensorValue)]
