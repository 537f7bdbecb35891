"""From a file to a message of protobuf, within limits."""

from __future__ import annotations

from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from compiler.graph.error import ModelError
from compiler.graph.read_onnx.functions import opsets_of
from compiler.graph.read_onnx.limits import MAX_MODEL_BYTES, MAX_OPSET, MIN_OPSET


def load_model(model: str | Path | bytes | ModelProto) -> ModelProto:
    """Return a model, which is not checked beyond its versions.

    Raises:
        ModelError: If it is too large, malformed, or of a version that is not supported.
        OSError: If the file can't be read.
    """
    proto = model if isinstance(model, ModelProto) else _parse(model)
    if not proto.HasField("graph"):
        raise ModelError("the file holds no graph: expected a model in the format of ONNX")
    version = opsets_of(proto).get("", None)
    if version is not None and not MIN_OPSET <= version <= MAX_OPSET:
        raise ModelError(
            f"the model uses version {version} of ONNX's operators: expected {MIN_OPSET} to"
            f" {MAX_OPSET}",
            advice="convert it with onnx.version_converter"
            if version < MIN_OPSET
            else "install a newer onnx",
        )
    return proto


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
