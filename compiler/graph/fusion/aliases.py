"""Which results of a graph need no kernel, since their memory is that of other values."""

from __future__ import annotations

from compiler.graph.fusion.views import View, is_contiguous_join, views_of
from compiler.graph.nodes import Graph, Node, Operand, TensorValue


class Aliases:
    """The views and the joins of a graph.

    A part of a value is a view, and a join is written in place, only in memory that the model owns:
    not in the arrays of its caller.

    Attributes:
        views: For each result that is a view, the operand whose memory it is.
        joins: For each concatenation that is written in place, the values that are its parts.
    """

    def __init__(self, graph: Graph) -> None:
        self.views: dict[TensorValue, View] = {}
        self.joins: dict[TensorValue, tuple[TensorValue, ...]] = {}
        self._made = {value for node in graph.nodes for value in node.outputs}
        parts = [(node, views) for node in graph.nodes if (views := views_of(node)) is not None]
        for node, views in parts:
            if len(views) == 1:
                self.views[node.output] = views[0]
        self._pinned = {self._whole(x) for x in graph.outputs}
        for node, views in parts:
            if len(views) > 1 and self._owns(node.operands[0]):
                self.views.update(zip(node.outputs, views, strict=True))
        self._find_joins(graph)

    def has(self, node: Node) -> bool:
        """Return whether a node needs no kernel."""
        return node.outputs[0] in self.views or node.outputs[0] in self.joins

    def _find_joins(self, graph: Graph) -> None:
        used: set[TensorValue] = set()
        for node in graph.nodes:
            if not is_contiguous_join(node) or node.output in self._pinned:
                continue
            parts = [self._whole(x) for x in node.operands]
            free = {
                x
                for x in parts
                if isinstance(x, TensorValue)
                and self._owns(x)
                and not (x in self.views or x in self.joins or x in used)
            }
            if len(free) == len(node.operands):
                used |= free
                self.joins[node.output] = tuple(x for x in parts if isinstance(x, TensorValue))

    def _owns(self, operand: Operand) -> bool:
        """Return whether the memory of an operand is neither the caller's nor a constant's."""
        root = self._whole(operand)
        return root in self._made and root not in self._pinned

    def _whole(self, operand: Operand) -> Operand:
        """Return the operand whose whole memory, or part of another's, an operand is."""
        while isinstance(operand, TensorValue) and operand in self.views:
            view = self.views[operand]
            if view.operand.type.size_bytes != operand.type.size_bytes:
                return operand
            operand = view.operand
        return operand
