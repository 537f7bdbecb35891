"""Functions: those of a model, and the bodies that ONNX gives for some of its operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, defs

from compiler.graph.error import ModelError
from compiler.graph.read_onnx.limits import MAX_OPSET, MIN_OPSET
from compiler.graph.read_onnx.schema import default_attributes, operand_types
from compiler.graph.read_onnx.symbolic import Result


@dataclass(frozen=True)
class FunctionCall:
    """A function, and the attributes of one call of it."""

    function: FunctionProto
    attributes: Mapping[str, AttributeProto]

    @property
    def opsets(self) -> dict[str, int]:
        """Return the versions of the operator sets that the body uses."""
        return opsets_of(self.function)


class Functions:
    """The functions of a model, by domain, name and overload."""

    def __init__(self, functions: Sequence[FunctionProto]) -> None:
        """Collect the functions of a model.

        Raises:
            ModelError: If two have one name.
        """
        self._functions: dict[tuple[str, str, str], FunctionProto] = {}
        for function in functions:
            key = (function.domain, function.name, function.overload)
            if self._functions.setdefault(key, function) is not function:
                named = ".".join(filter(None, key))
                raise ModelError(f"two functions of the model have the name {named!r}")

    def find(self, node: NodeProto, attributes: Sequence[AttributeProto]) -> FunctionCall | None:
        """Return the function of the model that a node calls, or None.

        Raises:
            ModelError: If the node does not fit the function.
        """
        function = self._functions.get((node.domain, node.op_type, node.overload))
        if function is None:
            return None
        if len(node.input) > len(function.input) or len(node.output) > len(function.output):
            raise ModelError(
                f"the node has {len(node.input)} operands and {len(node.output)} results: the"
                f" function has {len(function.input)} and {len(function.output)}"
            )
        given = {a.name: a for a in (*function.attribute_proto, *attributes)}
        return FunctionCall(function, given)


def body_of(
    schema: defs.OpSchema,
    opset: int,
    node: NodeProto,
    attributes: Sequence[AttributeProto],
    operands: Sequence[Result | None],
) -> FunctionCall | None:
    """Return the body that ONNX gives for an operator, or None if it gives none."""
    given = {**default_attributes(schema), **{a.name: a for a in attributes}}
    bodies: Any = schema  # the stubs of onnx lack what it says of bodies
    if bodies.has_function:
        return FunctionCall(bodies.function_body, given)
    versions = [v for v in bodies.context_dependent_function_opset_versions if v <= opset]
    if not versions:
        return None
    complete = NodeProto()
    complete.CopyFrom(node)
    del complete.attribute[:]
    complete.attribute.extend(attributes)
    body = bodies.get_context_dependent_function_with_opset_version(
        max(versions), complete.SerializeToString(), operand_types(operands)
    )
    return FunctionCall(FunctionProto.FromString(body), given) if body else None


def opsets_of(proto: ModelProto | FunctionProto) -> dict[str, int]:
    """Return the versions of operator sets that a model or a function imports, by domain.

    Raises:
        ModelError: If a version of ONNX's own operators is not supported.
    """
    versions = {domain_of(entry.domain): entry.version for entry in proto.opset_import}
    version = versions.get("", MAX_OPSET)
    if version < MIN_OPSET:
        raise _unsupported(version, "convert the model with onnx.version_converter")
    if version > MAX_OPSET:
        raise _unsupported(version, "install a newer onnx")
    return versions


def _unsupported(version: int, advice: str) -> ModelError:
    return ModelError(
        f"the model uses version {version} of ONNX's operators: expected {MIN_OPSET} to"
        f" {MAX_OPSET}",
        advice=advice,
    )


def domain_of(domain: str) -> str:
    """Return a domain; ONNX's own has two names."""
    return "" if domain == "ai.onnx" else domain
