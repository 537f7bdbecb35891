"""Broadcasting of version 6 of ONNX's operators, which names the axis of the first extent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import defs

from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant, TensorValue
from compiler.graph.read_onnx.attributes import AttributeValue
from compiler.graph.read_onnx.emit import Emitter
from compiler.graph.read_onnx.symbolic import Result, TensorSequence

NUMPY_BROADCASTING = 7
"""The first version that broadcasts as NumPy does."""


def aligned(
    schema: defs.OpSchema,
    attributes: Mapping[str, AttributeValue],
    inputs: Sequence[Result | None],
    emitter: Emitter,
    name: str,
) -> Sequence[Result | None]:
    """Return operands that broadcast as NumPy does it.

    Raises:
        ModelError: If the axis does not fit.
    """
    axis = 1 if schema.name == "PRelu" else attributes.get("axis")
    is_old = schema.name == "PRelu" or "broadcast" in schema.attributes
    if not is_old or not isinstance(axis, int):
        return inputs
    first, second = inputs
    assert not isinstance(first, TensorSequence), "these operators take tensors"
    if first is None or not isinstance(second, TensorValue | Constant) or not second.type.rank:
        return inputs
    missing = first.type.rank - axis % max(first.type.rank, 1) - second.type.rank
    if missing < 0:
        raise ModelError(f"{first.type} and {second.type} are broadcast along axis {axis}")
    shape = (*second.type.shape, *(1,) * missing)
    return [first, *emitter.add_all("reshape", second, shape=shape, name=name)]
