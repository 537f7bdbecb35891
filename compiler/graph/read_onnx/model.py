"""Read an ONNX model: the entry."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, TensorShapeProto, ValueInfoProto

from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, show_shape, symbol
from compiler.graph.nodes import Array, Constant, Graph, Operand, TensorType, constant
from compiler.graph.read_onnx.dtypes import dtype_of
from compiler.graph.read_onnx.emit import Emitter
from compiler.graph.read_onnx.functions import Functions, opsets_of
from compiler.graph.read_onnx.load import load_model
from compiler.graph.read_onnx.nodes import ModelState, NodeReader
from compiler.graph.read_onnx.symbolic import SymbolicInts, TensorSequence
from compiler.graph.read_onnx.tensors import TensorReader, check_shape


def read_onnx(
    model: str | Path | bytes | ModelProto,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fixed_inputs: Mapping[str, Array] | None = None,
) -> Graph:
    """Read an ONNX model into a graph. Nothing in the model is executed.

    Args:
        model: A file, the bytes of one, or a model in memory. Only a file has external data.
        shapes: The shapes of inputs by name, which fix symbolic axes. An axis of another input
            that has the same name in the model gets the same extent.
        fixed_inputs: The values of inputs by name; they become constants of the graph.

    Raises:
        ModelError: If the model is malformed, exceeds a limit, or needs what is not supported.
        OSError: If the file can't be read.
    """
    proto = load_model(model)
    folder = Path(model).parent if isinstance(model, str | Path) else None
    tensors = TensorReader(folder)
    emitter = Emitter(GraphBuilder(proto.graph.name or "main"), tensors)
    state = ModelState(emitter, tensors, Functions(proto.functions))
    reader = NodeReader(state, opsets_of(proto))
    _define_initializers(reader, proto.graph)
    _define_inputs(reader, proto.graph, shapes or {}, fixed_inputs or {})
    reader.read(proto.graph.node)
    names = [value.name for value in proto.graph.output]
    if not names:
        raise ModelError("the model has no outputs")
    if len(set(names)) < len(names):
        raise ModelError(f"two outputs of the model have one name: {names}")
    return emitter.finish([_output(reader, name) for name in names], names)


def _define_initializers(reader: NodeReader, graph: GraphProto) -> None:
    if graph.sparse_initializer:
        raise ModelError("sparse initializers are not supported", advice="make them dense")
    for tensor in graph.initializer:
        reader.define(tensor.name, constant(reader.state.tensors.array(tensor), tensor.name))


def _define_inputs(
    reader: NodeReader,
    graph: GraphProto,
    shapes: Mapping[str, Sequence[int]],
    fixed_inputs: Mapping[str, Array],
) -> None:
    # In old models, initializers are inputs too: they are the default values.
    inputs = [value for value in graph.input if value.name not in reader.values]
    _check_names("shapes", shapes, inputs)
    _check_names("fixed_inputs", fixed_inputs, inputs)
    given_shapes = {name: _given_shape(name, shape) for name, shape in shapes.items()}
    arrays = {name: np.asarray(array) for name, array in fixed_inputs.items()}
    symbols: dict[str, Extent] = {}
    for value in inputs:
        sizes = arrays[value.name].shape if value.name in arrays else ()
        _bind_symbols(value, given_shapes.get(value.name, sizes), symbols)
    for value in inputs:
        tensor_type = _input_type(value, given_shapes.get(value.name), symbols)
        if value.name in arrays:
            reader.define(value.name, _fixed(value, tensor_type, arrays[value.name]))
        else:
            reader.define(value.name, reader.state.emitter.input(value.name, tensor_type))


def _check_names(
    argument: str, given: Mapping[str, object], inputs: Sequence[ValueInfoProto]
) -> None:
    names = [value.name for value in inputs]
    for name in given:
        if name not in names:
            expected = ", ".join(map(repr, names)) or "none"
            raise ModelError(f"{argument}: the model has no input {name!r}; its inputs: {expected}")


def _given_shape(name: str, shape: object) -> tuple[int, ...]:
    """Return a shape that a user passes as integers."""
    try:
        if isinstance(shape, Iterable) and not isinstance(shape, str | bytes):
            return tuple(map(operator.index, shape))
    except TypeError:
        pass
    raise ModelError(f"shapes: the shape of input {name!r} is {shape!r}: expected integers")


def _bind_symbols(value: ValueInfoProto, shape: Sequence[int], symbols: dict[str, Extent]) -> None:
    """Remember the extents that a given shape fixes by their names in the model."""
    if len(value.type.tensor_type.shape.dim) != len(shape):
        return  # the shape of another rank is refused later
    for dim, extent in zip(value.type.tensor_type.shape.dim, shape, strict=False):
        axis = _axis_name(dim)
        if axis and symbols.setdefault(axis, extent) != extent:
            raise ModelError(
                f"input {value.name!r}: the axis {axis} is {extent}, and {symbols[axis]} in"
                " another input"
            )


def _axis_name(dim: TensorShapeProto.Dimension) -> str:
    """Return the name of an axis, or nothing: some exporters write "?" for several axes."""
    return dim.dim_param if any(map(str.isalnum, dim.dim_param)) else ""


def _input_type(
    value: ValueInfoProto, shape: Sequence[int] | None, symbols: dict[str, Extent]
) -> TensorType:
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise ModelError(
            f"input {value.name!r} is a {kind or 'value without a type'}: expected a tensor"
        )
    tensor = value.type.tensor_type
    try:
        dtype = dtype_of(tensor.elem_type)
    except ModelError as error:
        raise ModelError(f"input {value.name!r}: {error.reason}") from None
    if shape is None and not tensor.HasField("shape"):
        raise ModelError(
            f"input {value.name!r} has no shape",
            advice=f"pass it: shapes={{{value.name!r}: (...)}}",
        )
    declared = tuple(
        _extent(f"{value.name}_{axis}", dim, symbols) for axis, dim in enumerate(tensor.shape.dim)
    )
    given = declared if shape is None else tuple(shape)
    if tensor.HasField("shape"):
        _check_given(value.name, given, declared)
    check_shape(tuple(n for n in given if isinstance(n, int)), f"input {value.name!r}")
    return TensorType(given, dtype)


def _extent(name: str, dim: TensorShapeProto.Dimension, symbols: dict[str, Extent]) -> Extent:
    # Several exporters write 0 or -1 for an axis whose extent is not known.
    if dim.HasField("dim_value") and dim.dim_value > 0:
        return int(dim.dim_value)
    named = _axis_name(dim) or name
    return symbols.setdefault(named, symbol(named))


def _check_given(name: str, shape: tuple[Extent, ...], declared: tuple[Extent, ...]) -> None:
    fits = len(shape) == len(declared) and all(
        n == m for n, m in zip(shape, declared, strict=True) if isinstance(m, int)
    )
    if not fits:
        raise ModelError(f"shapes: input {name!r} is {show_shape(declared)}, not {shape}")


def _fixed(value: ValueInfoProto, tensor_type: TensorType, array: Array) -> Constant:
    fits = array.ndim == tensor_type.rank and all(
        n == m for n, m in zip(array.shape, tensor_type.shape, strict=True) if isinstance(m, int)
    )
    if array.dtype.name != tensor_type.dtype or not fits:
        raise ModelError(
            f"fixed_inputs: input {value.name!r} is {tensor_type}, not"
            f" {array.dtype.name} {array.shape}"
        )
    return constant(array, value.name)


def _output(reader: NodeReader, name: str) -> Operand:
    value = reader.value(name)
    if isinstance(value, SymbolicInts | TensorSequence):
        raise value.refusal(f"the result {name}")
    return value
