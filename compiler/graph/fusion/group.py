"""Groups of nodes, and the partition of a graph into groups, views and joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from compiler.graph.fusion.views import View
from compiler.graph.nodes import Graph, Node, Operand, TensorValue


@dataclass(frozen=True, eq=False)
class FusedGroup:
    """Nodes that become one kernel, in the order in which they run.

    Attributes:
        nodes: The nodes; only results of the last one are used outside.
        outputs: The results that are used outside.
    """

    nodes: tuple[Node, ...]
    outputs: tuple[TensorValue, ...]

    @cached_property
    def inputs(self) -> tuple[Operand, ...]:
        """Return the operands that are made outside, in the order of first use."""
        made = {value for node in self.nodes for value in node.outputs}
        operands = dict.fromkeys(x for node in self.nodes for x in node.operands)
        return tuple(x for x in operands if x not in made)

    @property
    def label(self) -> str:
        """Return the operators, for people."""
        return "+".join(node.op.rpartition(".")[2] for node in self.nodes)


@dataclass(frozen=True, eq=False)
class Partition:
    """A graph as kernels.

    Attributes:
        graph: The graph.
        groups: The groups in an order in which they can run.
        views: Results that are parts of the memory of another operand, without a kernel.
        joins: Results of concatenations whose parts are written in place, with these parts.
    """

    graph: Graph
    groups: tuple[FusedGroup, ...]
    views: Mapping[TensorValue, View]
    joins: Mapping[TensorValue, tuple[TensorValue, ...]]

    @cached_property
    def parts(self) -> Mapping[TensorValue, tuple[TensorValue, int]]:
        """Return the join that each part is written into, and where it begins, in bytes."""
        located: dict[TensorValue, tuple[TensorValue, int]] = {}
        for join, parts in self.joins.items():
            offset = 0
            for part in parts:
                located[part] = join, offset
                offset += part.type.size_bytes
        return located
