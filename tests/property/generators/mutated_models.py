"""ONNX models that were changed at random: their bytes, or the fields of their messages.

They start from the test cases that ONNX publishes, and from models with functions, branches and
loops.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto, parser

from tests.integration.compiler.graph.onnx_backend.cases import all_cases
from tests.property.generators.model_texts import MODEL_TEXTS

_INTEGERS = (0, 1, -1, 2, 3, 7, 8, 16, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 40)
_FLOATS = (0.0, -0.0, 0.5, -1.0, 1e30, 1e-45, float("inf"), float("-inf"), float("nan"))
_MAX_BYTES = 20_000
_MAX_CHANGES = 4


@cache
def corpus() -> tuple[bytes, ...]:
    """Return the models that mutations start from."""
    texts = [parser.parse_model(text).SerializeToString() for text in MODEL_TEXTS]
    cases = [case.model.SerializeToString() for case in all_cases()]
    # A small part of the cases of an operator is enough: they differ in the data.
    return (*texts * 4, *(data for data in cases if len(data) <= _MAX_BYTES))


def mutated(random: Random) -> bytes:
    """Return the bytes of a model that was changed."""
    data = random.choice(corpus())
    if random.random() < 0.2:
        return _changed_bytes(random, bytearray(data))
    model = ModelProto.FromString(data)
    for _ in range(random.randint(1, _MAX_CHANGES)):
        _change_message(random, model)
    return bytes(model.SerializeToString())


def _changed_bytes(random: Random, data: bytearray) -> bytes:
    for _ in range(random.randint(1, _MAX_CHANGES)):
        start = random.randrange(len(data) or 1)
        match random.randint(0, 3):
            case 0:
                data[start : start + 1] = bytes([random.randrange(256)])
            case 1:
                del data[start : start + random.randint(1, 9)]
            case 2:
                data[start:start] = random.randbytes(random.randint(1, 9))
            case _:
                del data[start:]
    return bytes(data)


def _change_message(random: Random, message: Any) -> None:
    """Change a field of a message, or of one inside it, which is more likely."""
    fields = [(field, value) for field, value in message.ListFields() if _size(field, value)]
    if not fields:
        return
    field, value = random.choice(fields)
    if field.type != FieldDescriptor.TYPE_MESSAGE:
        _change_scalar(random, message, field)
    elif not field.is_repeated:
        _change_message(random, value) if random.random() < 0.9 else message.ClearField(field.name)
    elif random.random() < 0.8:
        _change_message(random, random.choice(value))
    else:
        _change_list(random, value)


def _size(field: FieldDescriptor, value: Any) -> int:
    return len(value) if field.is_repeated else 1


def _change_list(random: Random, values: Any) -> None:
    """Delete, repeat or move an element."""
    position = random.randrange(len(values))
    element = type(values[position])()
    element.CopyFrom(values[position])
    match random.randint(0, 2):
        case 0:
            del values[position]
        case 1:
            values.append(element)
        case _:
            del values[position]
            values.append(element)


def _change_scalar(random: Random, message: Any, field: FieldDescriptor) -> None:
    if not field.is_repeated:
        setattr(message, field.name, _value(random, field, getattr(message, field.name)))
        return
    values = list(getattr(message, field.name))
    position = random.randrange(len(values))
    match random.randint(0, 3):
        case 0:
            del values[position]
        case 1:
            values.insert(position, random.choice(values))
        case _:
            values[position] = _value(random, field, values[position])
    message.ClearField(field.name)
    getattr(message, field.name).extend(values)


def _value(random: Random, field: FieldDescriptor, value: Any) -> Any:
    """Return a value of the type of a field."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if isinstance(value, bytes):
            return _changed_bytes(random, bytearray(value))
        case FieldDescriptor.CPPTYPE_STRING:
            return random.choice((*_names(), value[:-1], value + "_", ""))
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return random.choice(_FLOATS)
        case FieldDescriptor.CPPTYPE_ENUM:
            return random.choice([number.number for number in field.enum_type.values])
        case FieldDescriptor.CPPTYPE_INT32:
            return random.choice([n for n in (*_INTEGERS, *range(30)) if -(1 << 31) <= n < 1 << 31])
        case _:
            small = random.randint(-20, 40)
            numbers = [n for n in (*_INTEGERS, value + 1, value - 1, small) if n < 1 << 63]
            return random.choice([max(n, _least(field)) for n in numbers])


def _least(field: FieldDescriptor) -> int:
    return 0 if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else -(1 << 63)


@cache
def _names() -> tuple[str, ...]:
    """Return the names of values and operators of the corpus."""
    names = set()
    for data in corpus():
        for node in ModelProto.FromString(data).graph.node:
            names |= {node.op_type, *node.input, *node.output}
            names |= {attribute.name for attribute in node.attribute}
    return tuple(sorted(names))
