"""Add nodes to the graph, and fold those whose operands are all constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.nodes import (
    Attr,
    Constant,
    Graph,
    Node,
    Operand,
    TensorType,
    TensorValue,
    constant,
)
from compiler.graph.operator import GraphOperator, find_operator
from compiler.graph.read_onnx.limits import MAX_FOLDED_BYTES, MAX_FOLDED_PAIRS, MAX_NODES
from compiler.graph.read_onnx.tensors import TensorReader, check_shape
from compiler.graph.rewrite.fold_constants import fold_node


class Emitter:
    """Adds nodes to a builder; what follows from constants alone becomes a constant."""

    def __init__(self, builder: GraphBuilder, tensors: TensorReader) -> None:
        self._builder = builder
        self._tensors = tensors
        self._sources: dict[TensorValue, tuple[str, ...]] = {}
        self._num_nodes = 0
        self._folded_bytes = 0

    def input(self, name: str, tensor_type: TensorType) -> TensorValue:
        """Add an input of the graph."""
        value = self._builder.input(name, tensor_type)
        self._sources[value] = (name,)
        return value

    def add_all(
        self, op: str, *operands: Operand | None, name: str, **attrs: Attr
    ) -> tuple[Operand, ...]:
        """Add a node, or compute it.

        Raises:
            ModelError: If the operands or attributes do not fit, or a limit is exceeded.
        """
        operator = find_operator(op)
        complete = operator.complete(attrs)
        types = operator.infer_types([None if x is None else x.type for x in operands], complete)
        for tensor_type in types:
            check_shape(
                tuple(n for n in tensor_type.shape if isinstance(n, int)), f"a result of {op}"
            )
        if all(tensor_type.is_static and 0 in tensor_type.shape for tensor_type in types):
            return tuple(constant(np.empty(t.static_shape, t.dtype), name) for t in types)
        values = tuple(TensorValue(name, tensor_type) for tensor_type in types)
        folded = self._folded(operator, Node(op, operands, values, complete, name))
        if folded is not None:
            return folded
        self._num_nodes += 1
        if self._num_nodes > MAX_NODES:
            raise ModelError(f"the model has more than {MAX_NODES} nodes")
        results = self._builder.add_all(op, *operands, name=name, **complete)
        self._note_sources(operands, results)
        return results

    def _folded(self, operator: GraphOperator, node: Node) -> tuple[Constant, ...] | None:
        """Return the results of a node of constants, or None if it is to run with the model."""
        if (
            operator.kind in ("contract", "window", "opaque")
            and _num_pairs(node) > MAX_FOLDED_PAIRS
        ):
            return None
        folded = None if _is_weights(node) else fold_node(node)
        if folded is None:
            return None
        self.count_computed(sum(result.type.size_bytes for result in folded))
        return folded

    def count_computed(self, num_bytes: int) -> None:
        """Count the bytes of a constant that is computed; call it before large ones are made.

        Raises:
            ModelError: If all of them together exceed the limit.
        """
        self._folded_bytes += num_bytes
        limit_bytes = max(MAX_FOLDED_BYTES, 16 * self._tensors.num_bytes)
        if self._folded_bytes > limit_bytes:
            raise ModelError(f"constants of more than {limit_bytes} bytes follow from each other")

    def finish(self, outputs: Sequence[Operand], names: Sequence[str]) -> Graph:
        """Return the graph."""
        return self._builder.finish(outputs, names)

    def advice(self, operand: Operand) -> str:
        """Return what a user can do who needs an operand at the time of reading."""
        sources = self._sources.get(operand, ()) if isinstance(operand, TensorValue) else ()
        if not sources:
            return ""
        named = ", ".join(f"{source!r}: array" for source in sources)
        return f"pass the values that it follows from: fixed_inputs={{{named}}}"

    def _note_sources(
        self, operands: Sequence[Operand | None], results: Sequence[TensorValue]
    ) -> None:
        """Remember the inputs that results follow from, a few of them: messages name them."""
        sources = dict.fromkeys(
            source
            for operand in operands
            if isinstance(operand, TensorValue)
            for source in self._sources.get(operand, ())
        )
        for result in results:
            self._sources[result] = tuple(sources)[:4]


def _is_weights(node: Node) -> bool:
    """Return whether a node makes floats of integers that a product may multiply themselves."""
    return node.op == "dequantize" and node.output.type.rank >= 2


def _num_pairs(node: Node) -> int:
    """Return how often an element of an operand meets one of a result, at most."""
    num_operands = sum(x.type.num_elements for x in node.operands if x.type.is_static)
    return num_operands * sum(x.type.num_elements for x in node.outputs if x.type.is_static)
