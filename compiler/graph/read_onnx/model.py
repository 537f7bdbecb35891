"""Read an ONNX model: the entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, TypeProto, ValueInfoProto

from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, symbol
from compiler.graph.nodes import Array, Constant, Graph, Operand, TensorType, constant
from compiler.graph.read_onnx.dtypes import dtype_of
from compiler.graph.read_onnx.emit import Emitter
from compiler.graph.read_onnx.nodes import NodeReader
from compiler.graph.read_onnx.symbolic import SymbolicInts
from compiler.graph.read_onnx.tensors import TensorReader


def read_onnx(
    model: str | Path | bytes | ModelProto,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    fixed_inputs: Mapping[str, Array] | None = None,
) -> Graph:
    """Read an ONNX model into a graph.

    Args:
        model: A file, the bytes of one, or a model in memory.
        shapes: The shapes of inputs by name, for models with symbolic axes.
        fixed_inputs: The values of inputs by name; they become constants of the graph.

    Raises:
        ModelError: If the model is malformed, exceeds a limit, or needs what is not supported.
    """
    proto = _parse(model)
    reader = _ModelReader(proto, shapes or {}, fixed_inputs or {})
    return reader.graph()


def _parse(model: str | Path | bytes | ModelProto) -> ModelProto:
    if isinstance(model, ModelProto):
        return model
    data = model if isinstance(model, bytes) else Path(model).read_bytes()
    proto: ModelProto = ModelProto.FromString(data)
    return proto


class _ModelReader:
    def __init__(
        self,
        model: ModelProto,
        shapes: Mapping[str, Sequence[int]],
        fixed_inputs: Mapping[str, Array],
    ) -> None:
        self._model = model
        self._shapes = shapes
        self._fixed_inputs = fixed_inputs
        self._symbols: dict[str, Extent] = {}
        self._builder = GraphBuilder(model.graph.name or "main")
        self._emitter = Emitter(self._builder)

    def graph(self) -> Graph:
        """Return the graph of the model."""
        tensors = TensorReader()
        proto = self._model.graph
        values: dict[str, Operand | SymbolicInts] = {
            tensor.name: constant(tensors.array(tensor), tensor.name)
            for tensor in proto.initializer
        }
        for value in proto.input:
            if value.name not in values:
                values[value.name] = self._input(value)
        opsets = {entry.domain: entry.version for entry in self._model.opset_import}
        reader = NodeReader(self._emitter, tensors, opsets)
        reader.read(proto.node, values)
        outputs = [_output(values, value.name) for value in proto.output]
        return self._builder.finish(outputs, [value.name for value in proto.output])

    def _input(self, value: ValueInfoProto) -> Operand:
        tensor_type = self._input_type(value)
        if value.name in self._fixed_inputs:
            return _fixed(value.name, tensor_type, self._fixed_inputs[value.name])
        return self._emitter.input(value.name, tensor_type)

    def _input_type(self, value: ValueInfoProto) -> TensorType:
        tensor = value.type.tensor_type
        dtype = dtype_of(tensor.elem_type)
        if value.name in self._shapes:
            return TensorType(tuple(int(n) for n in self._shapes[value.name]), dtype)
        extents = [self._extent(value.name, k, n) for k, n in enumerate(tensor.shape.dim)]
        return TensorType(tuple(extents), dtype)

    def _extent(self, name: str, axis: int, dim: TypeProto.Tensor) -> Extent:
        if dim.HasField("dim_value"):
            return int(dim.dim_value)
        named = dim.dim_param or f"{name}_{axis}"
        return self._symbols.setdefault(named, symbol(named))


def _fixed(name: str, tensor_type: TensorType, array: Array) -> Constant:
    given = np.asarray(array)
    if given.dtype.name != tensor_type.dtype or given.ndim != tensor_type.rank:
        raise ModelError(
            f"fixed_inputs[{name!r}] is {given.dtype.name} {given.shape}: expected"
            f" {tensor_type.dtype} {tensor_type.shape}"
        )
    return constant(given, name)


def _output(values: Mapping[str, Operand | SymbolicInts], name: str) -> Operand:
    if name not in values:
        raise ModelError(f"the model returns {name}, which no node makes")
    value = values[name]
    if isinstance(value, SymbolicInts):
        raise value.refusal(f"the result {name}")
    return value
