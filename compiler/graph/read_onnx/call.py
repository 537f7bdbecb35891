"""One node of an ONNX model, as conversions see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto

from compiler.graph.error import ModelError
from compiler.graph.extents import Extent
from compiler.graph.nodes import Array, Attr, Constant, Operand, TensorType, constant
from compiler.graph.read_onnx.attributes import AttributeValue
from compiler.graph.read_onnx.dtypes import dtype_of
from compiler.graph.read_onnx.emit import Emitter
from compiler.graph.read_onnx.symbolic import (
    FIX_AXES,
    Result,
    SymbolicInts,
    TensorSequence,
    extents_operand,
)
from compiler.graph.read_onnx.tensors import check_shape
from compiler.ir.core.dtypes import DType


@dataclass(frozen=True)
class OnnxCall:
    """A node of a model with its operands; `compiler.graph.read_onnx.registry` lists the methods.

    Attributes:
        op_type: The operator.
        name: The name of the node, or of its first result.
        opset: The version of the operator set that the node belongs to.
        attributes: The attributes that the node has, by name; `onnx` defaults are not filled in.
        inputs: The operands in order.
        results: The names of the results; empty for one that is left out.
        emitter: Where new nodes go.
        read_graph: Reads a subgraph with values for its inputs, and returns its results.
    """

    op_type: str
    name: str
    opset: int
    attributes: Mapping[str, AttributeValue]
    inputs: tuple[Result | None, ...]
    results: tuple[str, ...]
    emitter: Emitter
    read_graph: Callable[[GraphProto, Sequence[Result]], list[Result]]

    # Operands

    @property
    def operands(self) -> tuple[Operand | None, ...]:
        """Return all operands."""
        return tuple(self.optional(position) for position in range(len(self.inputs)))

    def operand(self, position: int) -> Operand:
        """Return an operand.

        Raises:
            ModelError: If it is left out, a sequence, or consists of symbolic extents.
        """
        operand = self.optional(position)
        if operand is None:
            raise ModelError(f"operand {position} is missing")
        return operand

    def optional(self, position: int) -> Operand | None:
        """Return an operand, or None if it is left out.

        Raises:
            ModelError: If it is a sequence, or consists of symbolic extents.
        """
        operand = self.inputs[position] if position < len(self.inputs) else None
        if isinstance(operand, SymbolicInts | TensorSequence):
            raise operand.refusal(f"operand {position}")
        return operand

    def sequence(self, position: int) -> TensorSequence:
        """Return an operand that is a sequence, as the schema says."""
        operand = self.inputs[position]
        assert isinstance(operand, TensorSequence), "the schema says so"
        return operand

    def has(self, position: int) -> bool:
        """Return whether an operand is present."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def type(self, position: int = 0) -> TensorType:
        """Return the type of an operand."""
        operand = self.inputs[position] if position < len(self.inputs) else None
        if operand is None:
            raise ModelError(f"operand {position} is missing")
        if isinstance(operand, TensorSequence):
            raise operand.refusal(f"operand {position}")
        return operand.type

    def static_type(self, position: int = 0) -> TensorType:
        """Return the type of an operand whose extents are integers.

        Raises:
            ModelError: If an extent is symbolic.
        """
        tensor_type = self.type(position)
        if not tensor_type.is_static:
            raise ModelError(
                f"operand {position} is {tensor_type}: expected extents of integers",
                advice=FIX_AXES,
            )
        return tensor_type

    def constant_of(self, position: int, what: str) -> Array:
        """Return the elements of an operand that is known when the model is read.

        Args:
            position: The number of the operand.
            what: The operand in words, such as "the shape", for the refusal.

        Raises:
            ModelError: If the operand is computed at run time.
        """
        operand = self.operand(position)
        if isinstance(operand, Constant):
            return operand.elements
        raise ModelError(f"{what} is computed at run time", advice=self.emitter.advice(operand))

    def scalar_of(self, position: int, what: str) -> Array:
        """Return the one element of an operand that is known when the model is read.

        Raises:
            ModelError: If the operand is computed at run time, or has another number of elements.
        """
        elements = self.constant_of(position, what)
        if elements.size != 1:
            raise ModelError(f"{what} has {elements.size} elements: expected one")
        return elements.reshape(())

    def ints(
        self, name: str, position: int, default: Sequence[int] | None = None
    ) -> tuple[int, ...] | None:
        """Return integers that are an attribute, or a constant operand in later versions.

        Args:
            name: The attribute, and what the operand is called in ONNX.
            position: The number of the operand.
            default: The result if neither is present.

        Raises:
            ModelError: If the operand is computed at run time.
        """
        if name in self.attributes:
            return self.ints_attr(name)
        if self.has(position):
            return _integers(self.constant_of(position, f"the operand {name}"), name)
        return None if default is None else tuple(default)

    def extents(self, name: str, position: int) -> tuple[Extent, ...]:
        """Return extents that are an attribute, or an operand, whose elements may be symbolic.

        Raises:
            ModelError: If they are missing, or computed at run time.
        """
        if position < len(self.inputs) and name not in self.attributes:
            operand = self.inputs[position]
            if isinstance(operand, SymbolicInts):
                return operand.extents
        extents = self.ints(name, position)
        if extents is None:
            raise ModelError(f"the operand {name} is missing")
        return extents

    # Attributes

    def int_attr(self, name: str, default: int | None = None) -> int:
        """Return an integer."""
        value = self._attribute(name, default)
        assert isinstance(value, int), "the schema says so"
        return value

    def float_attr(self, name: str, default: float | None = None) -> float:
        """Return a number."""
        value = self._attribute(name, default)
        assert isinstance(value, float), "the schema says so"
        return value

    def string_attr(self, name: str, default: str | None = None) -> str:
        """Return a string."""
        value = self._attribute(name, default)
        assert isinstance(value, str), "the schema says so"
        return value

    def ints_attr(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return integers."""
        value = self._attribute(name, None if default is None else tuple(default))
        assert isinstance(value, tuple), "the schema says so"
        return tuple(int(element) for element in value)

    def floats_attr(self, name: str, default: Sequence[float] | None = None) -> tuple[float, ...]:
        """Return numbers."""
        value = self._attribute(name, None if default is None else tuple(default))
        assert isinstance(value, tuple), "the schema says so"
        return tuple(float(element) for element in value)

    def strings_attr(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return strings."""
        value = self._attribute(name, None if default is None else tuple(default))
        assert isinstance(value, tuple), "the schema says so"
        return tuple(str(element) for element in value)

    def tensor_attr(self, name: str) -> Array | None:
        """Return the elements of a tensor, or None if it is missing."""
        value = self.attributes.get(name)
        assert value is None or isinstance(value, np.ndarray), "the schema says so"
        return value

    def graph_attr(self, name: str) -> GraphProto:
        """Return a subgraph."""
        value = self._attribute(name, None)
        assert isinstance(value, GraphProto), "the schema says so"
        return value

    def dtype_attr(self, name: str) -> DType | None:
        """Return a data type, such as the `to` of a Cast, or None if it is missing.

        Raises:
            ModelError: If graphs have no such type.
        """
        return dtype_of(self.int_attr(name)) if name in self.attributes else None

    # Results

    def add(self, op: str, *operands: Operand | None, **attrs: Attr) -> Operand:
        """Add an operator with one result, and return it; see `add_all`."""
        [result] = self.add_all(op, *operands, **attrs)
        return result

    def add_all(self, op: str, *operands: Operand | None, **attrs: Attr) -> tuple[Operand, ...]:
        """Add a tensor-level operator, and return its results; constants are folded.

        Raises:
            ModelError: If the operands or attributes do not fit.
        """
        return self.emitter.add_all(op, *operands, name=self.name, **attrs)

    def constant(self, array: object) -> Constant:
        """Return a constant; `check_size` comes first if its size follows from the model."""
        return constant(array, self.name)

    def check_size(self, *shape: int) -> None:
        """Refuse a constant that is too large to be computed, in 8 bytes for each element.

        Raises:
            ModelError: If it is.
        """
        check_shape(shape, "a constant that is computed")
        self.emitter.count_computed(8 * math.prod(shape))

    def like(self, operand: Operand, number: float) -> Constant:
        """Return a scalar constant of the data type of an operand."""
        return self.constant(np.asarray(number).astype(operand.type.dtype))

    def extents_operand(self, extents: Sequence[Extent]) -> Result:
        """Return extents as a vector of int64, which may be symbolic."""
        return extents_operand(extents, self.name)

    def wants(self, position: int) -> bool:
        """Return whether a result is used."""
        return position < len(self.results) and bool(self.results[position])

    def _attribute(self, name: str, default: AttributeValue | None) -> AttributeValue:
        value = self.attributes.get(name, default)
        if value is None:
            raise ModelError(f"the attribute {name} is missing")
        return value


def _integers(array: Array, name: str) -> tuple[int, ...]:
    if array.dtype.kind not in "iu" or array.ndim > 1:
        raise ModelError(
            f"the operand {name} is {array.dtype.name} {array.shape}: expected integers in one"
            " dimension"
        )
    return tuple(int(element) for element in array.reshape(-1))
