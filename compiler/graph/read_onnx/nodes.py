"""Read nodes in order: each becomes nodes of the graph, or constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence

from onnx import NodeProto

from compiler.graph.error import ModelError
from compiler.graph.read_onnx.attributes import read_attributes
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.emit import Emitter
from compiler.graph.read_onnx.registry import CONVERSIONS
from compiler.graph.read_onnx.symbolic import Result
from compiler.graph.read_onnx.tensors import TensorReader


class NodeReader:
    """Reads the nodes of a graph, a subgraph or a function."""

    def __init__(self, emitter: Emitter, tensors: TensorReader, opsets: Mapping[str, int]) -> None:
        self._emitter = emitter
        self._tensors = tensors
        self._opsets = opsets

    def read(self, nodes: Iterable[NodeProto], values: MutableMapping[str, Result]) -> None:
        """Read nodes; their results join `values` by name.

        Raises:
            ModelError: If a node is malformed or not supported.
        """
        for node in nodes:
            try:
                self._read_node(node, values)
            except ModelError as error:
                raise error.at(node.op_type, _name(node)) from error

    def _read_node(self, node: NodeProto, values: MutableMapping[str, Result]) -> None:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in CONVERSIONS:
            raise ModelError("the operator is not supported")
        call = OnnxCall(
            node.op_type,
            _name(node),
            self._opsets[domain],
            read_attributes(node, {}, self._tensors),
            tuple(_value(values, name) for name in node.input),
            tuple(node.output),
            self._emitter,
        )
        results = CONVERSIONS[domain, node.op_type](call)
        self._bind(node, results if isinstance(results, Sequence) else (results,), values)

    def _bind(
        self,
        node: NodeProto,
        results: Sequence[Result | None],
        values: MutableMapping[str, Result],
    ) -> None:
        for position, name in enumerate(node.output):
            if not name:
                continue
            result = results[position] if position < len(results) else None
            if result is None:
                raise ModelError(f"the result {name} (number {position}) is not supported")
            if name in values:
                raise ModelError(f"the result {name} is made twice")
            values[name] = result


def _name(node: NodeProto) -> str:
    return node.name or next((name for name in node.output if name), "")


def _value(values: Mapping[str, Result], name: str) -> Result | None:
    if not name:
        return None
    if name not in values:
        raise ModelError(f"the operand {name} is read before it is made, or no node makes it")
    return values[name]
