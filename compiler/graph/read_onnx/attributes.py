"""The attributes of nodes, as values of Python and NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from onnx import AttributeProto, GraphProto

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array
from compiler.graph.read_onnx.tensors import TensorReader

AttributeValue: TypeAlias = (
    "int | float | str | Array | GraphProto | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]"
)


def read_attributes(
    attributes: Sequence[AttributeProto], tensors: TensorReader
) -> Mapping[str, AttributeValue]:
    """Return the values of attributes by name.

    Raises:
        ModelError: If an attribute appears twice, or has a value of an unsupported type.
    """
    values: dict[str, AttributeValue] = {}
    for attribute in attributes:
        if attribute.name in values:
            raise ModelError(f"the attribute {attribute.name} appears twice")
        values[attribute.name] = _value(attribute, tensors)
    return MappingProxyType(values)


def given_attributes(
    attributes: Sequence[AttributeProto], outer: Mapping[str, AttributeProto]
) -> list[AttributeProto]:
    """Return attributes, with references to those of the enclosing function replaced.

    A reference to an attribute that the call does not have is left out.
    """
    given = []
    for attribute in attributes:
        if not attribute.ref_attr_name:
            given.append(attribute)
        elif attribute.ref_attr_name in outer:
            renamed = AttributeProto()
            renamed.CopyFrom(outer[attribute.ref_attr_name])
            renamed.name = attribute.name
            given.append(renamed)
    return given


def _value(attribute: AttributeProto, tensors: TensorReader) -> AttributeValue:
    match attribute.type:
        case AttributeProto.INT:
            return attribute.i
        case AttributeProto.FLOAT:
            return attribute.f
        case AttributeProto.STRING:
            return _text(attribute.s)
        case AttributeProto.INTS:
            return tuple(attribute.ints)
        case AttributeProto.FLOATS:
            return tuple(attribute.floats)
        case AttributeProto.STRINGS:
            return tuple(_text(element) for element in attribute.strings)
        case AttributeProto.TENSOR:
            return tensors.array(attribute.t)
        case AttributeProto.GRAPH:
            return attribute.g
        case _:
            raise ModelError(f"the attribute {attribute.name} has a value of an unsupported type")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
