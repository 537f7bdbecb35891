"""What the schemas of ONNX say of a node: conversions rely on it, so it is checked first.

A schema is found by operator, version of the operator set and domain. An operator of another
domain has none: its conversion checks more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from onnx import AttributeProto, NodeProto, TypeProto, defs

from compiler.graph.error import ModelError
from compiler.graph.read_onnx.dtypes import elem_type_of, type_name
from compiler.graph.read_onnx.symbolic import Result, TensorSequence

_MAX_VERSION = (1 << 31) - 1
_Option = defs.OpSchema.FormalParameterOption


@lru_cache(maxsize=1024)
def find_schema(op_type: str, opset: int, domain: str) -> defs.OpSchema | None:
    """Return the schema of an operator, or None if ONNX has none."""
    if not 0 < opset <= _MAX_VERSION:
        return None
    try:
        return defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None


def check_form(
    schema: defs.OpSchema, node: NodeProto, attributes: Sequence[AttributeProto]
) -> None:
    """Refuse a node whose numbers of operands and results, or attributes, do not fit.

    Raises:
        ModelError: If they do not fit.
    """
    _check_number("operands", len(node.input), schema.min_input, schema.max_input)
    _check_number("results", len(node.output), schema.min_output, schema.max_output)
    for position, name in enumerate(node.input[: len(schema.inputs)]):
        if not name and schema.inputs[position].option == _Option.Single:
            raise ModelError(f"operand {position} ({schema.inputs[position].name}) is missing")
    given = {attribute.name for attribute in attributes}
    for attribute in attributes:
        _check_attribute(schema, attribute)
    for name, declared in schema.attributes.items():
        if declared.required and name not in given:
            raise ModelError(f"the attribute {name} is missing")


def check_types(schema: defs.OpSchema, operands: Sequence[Result | None]) -> None:
    """Refuse operands of data types that the schema does not allow, or that must agree.

    Raises:
        ModelError: If a type is not allowed.
    """
    bound: dict[str, str] = {}
    for position, operand in enumerate(operands):
        if operand is None:
            continue
        parameter = schema.inputs[min(position, len(schema.inputs) - 1)]
        name = _type_name(operand)
        if name not in parameter.types and f"optional({name})" not in parameter.types:
            allowed = ", ".join(sorted(parameter.types))
            raise ModelError(
                f"operand {position} ({parameter.name}) is a {name}: expected {allowed}"
            )
        agreed = bound.setdefault(parameter.type_str, name) if parameter.is_homogeneous else name
        if agreed != name:
            raise ModelError(
                f"operand {position} ({parameter.name}) is a {name}: expected a {agreed} as an"
                " earlier operand"
            )


def _type_name(operand: Result) -> str:
    if isinstance(operand, TensorSequence):
        return f"seq({type_name(operand.dtype)})"
    return type_name(operand.type.dtype)


def operand_types(operands: Sequence[Result | None]) -> list[bytes]:
    """Return the types of operands as messages of ONNX; an empty one for a missing operand."""
    return [TypeProto().SerializeToString() if x is None else _type_proto(x) for x in operands]


def default_attributes(schema: defs.OpSchema) -> Mapping[str, AttributeProto]:
    """Return the default values of attributes, for bodies that refer to them."""
    return {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if attribute.default_value.type != AttributeProto.UNDEFINED
    }


def _check_number(what: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        expected = f"{least}" if least == most else f"{least} to {most}"
        raise ModelError(f"the node has {number} {what}: expected {expected}")


def _check_attribute(schema: defs.OpSchema, attribute: AttributeProto) -> None:
    if attribute.name not in schema.attributes:
        expected = ", ".join(schema.attributes) or "none"
        raise ModelError(f"there is no attribute {attribute.name}: expected {expected}")
    expected_type: Any = schema.attributes[attribute.name].type
    if attribute.type != expected_type.value:
        raise ModelError(
            f"the attribute {attribute.name} has a value of the type"
            f" {AttributeProto.AttributeType.Name(attribute.type)}: expected {expected_type.name}"
        )


def _type_proto(operand: Result) -> bytes:
    proto = TypeProto()
    if isinstance(operand, TensorSequence):
        proto.sequence_type.elem_type.tensor_type.elem_type = elem_type_of(operand.dtype)
        return bytes(proto.SerializeToString())
    proto.tensor_type.elem_type = elem_type_of(operand.type.dtype)
    for extent in operand.type.shape:
        dim = proto.tensor_type.shape.dim.add()
        if isinstance(extent, int):
            dim.dim_value = extent
    return bytes(proto.SerializeToString())
