"""Partition a graph into groups: greedily, anchors first, along post-dominators.

All values of a group but the results of its last node are used inside it alone, so that groups
never wait for each other: a cycle of groups would be a cycle of their last nodes. The kinds of
operators, and the order, are those of TVM's fusion (Chen et al., OSDI 2018).

- A contraction or a window takes the maps that follow it, with any operands from outside, then at
  most one transposition; a window only one that leaves the last axis in its place.
- A row or a reduction takes maps on both sides.
- The remaining maps and movements form groups of loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from compiler.graph.fusion.aliases import Aliases
from compiler.graph.fusion.dominators import between, post_dominators
from compiler.graph.fusion.group import FusedGroup, Partition
from compiler.graph.nodes import Graph, Node, Operand, TensorValue
from compiler.graph.operator import Kind, find_operator

MAX_NODES = 32
"""Nodes of a group: one expression computes them all, and rules and passes visit it often. Chosen.
"""
PROLOGUES = frozenset({"nn.pad", "dequantize", "astype"})
"""What is computed while a product or a window reads its operands: each element costs little."""
READ_ONCE = frozenset({"permute_dims", "strided_slice", "nn.pad", "flip"})
"""Movements that read each element at most once, so that what makes it can be computed there; of
paddings, only those by a number.
"""

_ANCHORS: tuple[Kind, ...] = ("contract", "window")
_ROWS: tuple[Kind, ...] = ("row", "reduce")
_LOOPS: tuple[Kind, ...] = ("map", "move")
_MOVES_AFTER = {kind: frozenset({"permute_dims"}) for kind in _ANCHORS} | dict.fromkeys(
    _LOOPS, READ_ONCE
)


def fuse(graph: Graph, alone: Collection[Node] = ()) -> Partition:
    """Return the groups, the views and the joins of a graph of static types.

    Args:
        graph: The graph, without dead nodes.
        alone: Nodes that no group may take along, such as those whose group was too large.
    """
    return _Fusion(graph, alone).run()


class _Fusion:
    """The groups so far; nodes are their positions in the graph."""

    def __init__(self, graph: Graph, alone: Collection[Node]) -> None:
        self._graph = graph
        self._nodes = graph.nodes
        self._aliases = Aliases(graph)
        self._kinds: list[Kind] = [find_operator(node.op).kind for node in self._nodes]
        self._producers = {v: n for n, node in enumerate(self._nodes) for v in node.outputs}
        self._returned = {x for x in graph.outputs if isinstance(x, TensorValue)}
        self._successors: list[list[int]] = [[] for _ in self._nodes]
        for number, node in enumerate(self._nodes):
            for producer in self._producers_of(node.operands):
                self._successors[producer].append(number)
        for value in self._returned & self._producers.keys():
            self._successors[self._producers[value]].append(len(self._nodes))
        self._immediate = post_dominators(self._successors)
        self._alone = {n for n, node in enumerate(self._nodes) if node in alone}
        self._grouped: set[int] = set()

    def run(self) -> Partition:
        """Return the partition."""
        groups = [
            sorted(self._grow(seed))
            for kinds in (_ANCHORS, _ROWS, (*_LOOPS, "opaque"))
            for seed, kind in enumerate(self._kinds)
            if kind in kinds and self._is_free(seed)
        ]
        inside = {v for n in self._grouped for v in self._nodes[n].outputs}
        return Partition(
            self._graph,
            tuple(self._group(members) for members in sorted(groups, key=lambda g: g[-1])),
            {value: view for value, view in self._aliases.views.items() if value not in inside},
            self._aliases.joins,
        )

    def _producers_of(self, operands: Iterable[Operand]) -> list[int]:
        values = [x for x in operands if isinstance(x, TensorValue) and x in self._producers]
        return list(dict.fromkeys(self._producers[x] for x in values))

    def _is_free(self, number: int) -> bool:
        return number not in self._grouped and not self._aliases.has(self._nodes[number])

    def _may_join(self, number: int) -> bool:
        return self._is_free(number) and number not in self._alone

    # --- growth -----------------------------------------------------------------------------------

    def _grow(self, seed: int) -> list[int]:
        """Return the group of a node: it, and what it takes along."""
        members = [seed]
        self._grouped.add(seed)
        if self._kinds[seed] != "opaque" and seed not in self._alone:
            self._take_readers(members)
            self._take_operands(members)
        return members

    def _claim(self, numbers: Iterable[int], members: list[int]) -> None:
        members += numbers
        self._grouped.update(members)

    def _take_readers(self, members: list[int]) -> None:
        """Take the nodes up to the next post-dominator, as long as they fit."""
        moves = _MOVES_AFTER.get(self._kinds[members[0]], frozenset())
        is_loop = self._kinds[members[0]] in _LOOPS
        sink, views = members[0], list[int]()
        while (end := self._immediate[sink]) < len(self._nodes):
            path = between(self._successors, sink, end)
            if path == [end] and self._is_plain_view(end):
                views.append(end)  # it is taken along only with what follows
                sink = end
                continue
            if len(members) + len(views) + len(path) > MAX_NODES:
                return
            if not all(map(self._may_join, path)):
                return
            is_move = path == [end] and _reads_once(self._nodes[end], moves)
            if is_move and self._scatters(members[0], end):
                return
            if not is_move and (not self._are_maps(path, sink) or self._are_reshaped(views)):
                return
            self._claim([*views, *path], members)
            if is_move and not is_loop:
                return
            sink, views = end, []

    def _scatters(self, seed: int, move: int) -> bool:
        """Return whether a window would write the elements of a vector far from each other.

        A convolution of 28 x 28 pixels and 192 channels takes twice its time so (one core of a
        Zen 4): five times that of a kernel which only transposes.
        """
        node = self._nodes[move]
        if self._kinds[seed] != "window" or node.op != "permute_dims":
            return False
        axes = node.attrs["axes"]
        return not isinstance(axes, tuple) or axes[-1] not in (-1, len(axes) - 1)

    def _is_plain_view(self, number: int) -> bool:
        node = self._nodes[number]
        return (
            number not in self._grouped
            and len(node.outputs) == 1
            and (node.output in self._aliases.views)
        )

    def _are_maps(self, path: Iterable[int], sink: int) -> bool:
        """Return whether nodes are maps of the elements that the last node makes."""
        shape = self._nodes[sink].outputs[0].type.shape
        return all(
            self._kinds[n] == "map" and all(v.type.shape == shape for v in self._nodes[n].outputs)
            for n in path
        )

    def _are_reshaped(self, views: Iterable[int]) -> bool:
        """Return whether views split or join axes, so that what follows would divide indices."""
        return any(
            _without_ones(self._nodes[n].operands[0]) != _without_ones(self._nodes[n].output)
            for n in views
        )

    def _take_operands(self, members: list[int]) -> None:
        """Take nodes that only this group reads and that it can compute as it reads them."""
        queue = list(members)
        while queue:
            reader = queue.pop()
            for number in self._producers_of(self._nodes[reader].operands):
                if len(members) < MAX_NODES and self._may_take(number, reader, members):
                    self._claim([number], members)
                    queue.append(number)

    def _may_take(self, number: int, reader: int, members: list[int]) -> bool:
        node, kind = self._nodes[number], self._kinds[reader]
        if not self._may_join(number) or set(self._successors[number]) - set(members):
            return False
        if kind in _ANCHORS:
            return _reads_once(node, PROLOGUES)
        if self._kinds[number] != "map":
            return False
        if kind == "map":
            return node.output.type.shape == self._nodes[reader].outputs[0].type.shape
        if kind in _ROWS:
            return node.output.type.shape == self._nodes[reader].operands[0].type.shape
        return _reads_once(self._nodes[reader], READ_ONCE)

    # --- groups -----------------------------------------------------------------------------------

    def _group(self, members: list[int]) -> FusedGroup:
        inside = set(members)
        nodes = tuple(self._nodes[number] for number in members)
        outputs = tuple(
            value
            for number in members
            for value in self._nodes[number].outputs
            if value in self._returned or self._readers(number, value) - inside
        )
        return FusedGroup(nodes, outputs)

    def _readers(self, number: int, value: TensorValue) -> set[int]:
        readers = (n for n in self._successors[number] if n < len(self._nodes))
        return {n for n in readers if value in self._nodes[n].operands}


def _reads_once(node: Node, operators: Collection[str]) -> bool:
    """Return whether a node is one of some operators, and reads each element at most once."""
    return node.op in operators and node.attrs.get("pad_mode", "constant") == "constant"


def _without_ones(operand: Operand) -> list[object]:
    return [extent for extent in operand.type.shape if extent != 1]
