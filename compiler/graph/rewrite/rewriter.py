"""Make a graph anew, node by node, with some nodes replaced; rewrites share it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from compiler.graph.builder import GraphBuilder
from compiler.graph.nodes import Attr, Constant, Graph, Node, Operand, TensorValue

Replacement: TypeAlias = Sequence[Operand] | None
"""What stands for the results of a node from now on; None to keep the node."""


class Rewriter:
    """The part of the new graph that exists already.

    Values of the old graph that are kept are the same objects in the new one.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        values = [*graph.inputs, *(value for node in graph.nodes for value in node.outputs)]
        self._builder = GraphBuilder(graph.name, (value.name for value in values))
        self._operands: dict[TensorValue, Operand] = {}
        self._producers: dict[TensorValue, Node] = {}
        self._num_reads = count_reads(graph)
        self._name = ""

    def add(self, op: str, *inputs: Operand | None, **attrs: Attr) -> TensorValue:
        """Add an operator with one result; it gets the name of the node that is replaced."""
        [value] = self.add_all(op, *inputs, **attrs)
        return value

    def add_all(self, op: str, *inputs: Operand | None, **attrs: Attr) -> tuple[TensorValue, ...]:
        """Add an operator, and return its results."""
        outputs = self._builder.add_all(op, *inputs, name=self._name, **attrs)
        self._producers.update(dict.fromkeys(outputs, self._builder.last))
        return outputs

    def with_inputs(self, node: Node, *inputs: Operand | None) -> TensorValue:
        """Add the operator of a node of one result to other operands; it keeps its name."""
        [value] = self._builder.add_all(node.op, *inputs, name=node.name, **node.attrs)
        self._producers[value] = self._builder.last
        return value

    def producer(self, operand: Operand | None, op: str | None = None) -> Node | None:
        """Return the node that makes an operand; None if there is none, or not of operator `op`."""
        node = self._producers.get(operand) if isinstance(operand, TensorValue) else None
        return node if node is None or op in (None, node.op) else None

    def is_read_once(self, operand: Operand | None) -> bool:
        """Return whether a single node reads a value, once, and the graph does not return it."""
        return isinstance(operand, TensorValue) and self._num_reads[operand] == 1

    def run(self, visit: Callable[[Node, Rewriter], Replacement]) -> Graph:
        """Return the new graph; `visit` gets each node with its new operands."""
        for old in self._graph.nodes:
            inputs = tuple(None if x is None else self._current(x) for x in old.inputs)
            node = replace(old, inputs=inputs)
            self._name = node.name
            replacement = visit(node, self)
            if replacement is None:
                self._keep(old if node.inputs == old.inputs else node)
                continue
            for value, operand in zip(node.outputs, replacement, strict=True):
                assert value.type == operand.type, f"{value.name}: {value.type} != {operand.type}"
                self._operands[value] = operand
                if isinstance(operand, TensorValue):
                    self._num_reads[operand] += self._num_reads[value]
        nodes = self._builder.nodes
        outputs = tuple(map(self._current, self._graph.outputs))
        return replace(self._graph, nodes=nodes, outputs=outputs)

    def _current(self, operand: Operand) -> Operand:
        if isinstance(operand, TensorValue):
            return self._operands.get(operand, operand)
        return operand

    def _keep(self, node: Node) -> None:
        self._builder.append(node)
        self._producers.update(dict.fromkeys(node.outputs, node))


def rewrite_nodes(graph: Graph, visit: Callable[[Node, Rewriter], Replacement]) -> Graph:
    """Return a graph with the nodes replaced for which `visit` returns a replacement.

    Nodes that are no longer read stay: `remove_dead` drops them.
    """
    return Rewriter(graph).run(visit)


def count_reads(graph: Graph) -> Counter[TensorValue]:
    """Return how often each value is read by nodes or returned."""
    operands = [*(x for node in graph.nodes for x in node.operands), *graph.outputs]
    return Counter(x for x in operands if not isinstance(x, Constant))
