"""From a file to a message of protobuf, within limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from onnx import ModelProto

from compiler.graph.error import ModelError
from compiler.graph.read_onnx.limits import MAX_MODEL_BYTES


def load_model(model: str | Path | bytes | ModelProto) -> ModelProto:
    """Return a model, which is not checked further.

    Raises:
        ModelError: If it is too large, or no model.
        OSError: If the file can't be read.
    """
    proto = model if isinstance(model, ModelProto) else _parse(model)
    if not proto.HasField("graph"):
        raise ModelError("the file holds no graph: expected a model in the format of ONNX")
    _check_texts(proto)
    return proto


def _check_texts(model: ModelProto) -> None:
    """Refuse texts that are not UTF-8: protobuf returns them as bytes."""
    messages: list[Any] = [model]
    while messages:
        for field, value in messages.pop().ListFields():
            elements = value if field.is_repeated else (value,)
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                messages.extend(elements)
            elif field.type == FieldDescriptor.TYPE_STRING and not all(
                isinstance(element, str) for element in elements
            ):
                raise ModelError(f"a text of the field {field.name} is not in UTF-8")


def _parse(model: str | Path | bytes) -> ModelProto:
    num_bytes = len(model) if isinstance(model, bytes) else Path(model).stat().st_size
    if num_bytes > MAX_MODEL_BYTES:
        raise ModelError(
            f"the model has {num_bytes} bytes: expected at most {MAX_MODEL_BYTES}",
            advice="store the weights as external data",
        )
    data = model if isinstance(model, bytes) else Path(model).read_bytes()
    try:
        proto: ModelProto = ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelError(f"the file is not a model in the format of ONNX: {error}") from None
    return proto
