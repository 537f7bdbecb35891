"""Lower a graph to programs and a plan of memory; the programs have no schedules yet."""

from __future__ import annotations

import compiler.graph.operators  # noqa: F401  declares the operators
from compiler.graph.error import ModelError
from compiler.graph.fusion.fuse import fuse
from compiler.graph.fusion.group import FusedGroup
from compiler.graph.lower import LoweredGroup, lower_copy, lower_group
from compiler.graph.memory import plan_memory
from compiler.graph.nodes import Graph, Node
from compiler.graph.rewrite.channels_last import channels_last
from compiler.graph.rewrite.convolutions import is_convolution
from compiler.graph.rewrite.layout_regions import MAX_PIXELS
from compiler.graph.rewrite.simplify import simplify
from compiler.graph.tasks import model_tasks
from compiler.graph.verify import verify_graph
from compiler.package.assemble import LoweredModel


def lower_model(graph: Graph, max_pixels: int = MAX_PIXELS) -> LoweredModel:
    """Return the programs of a graph, and where its values are.

    Args:
        graph: The graph.
        max_pixels: The pixels of the largest images whose convolutions have their channels last.

    Raises:
        ModelError: If the graph is not legal, has symbolic extents, or an operator can't be
            expressed for its operands.
    """
    verify_graph(graph)
    _require_static(graph)
    simple = simplify(graph)
    graph = channels_last(simple, max_pixels)
    num_channels_last = _num_convolutions(simple) - _num_convolutions(graph)
    alone: set[Node] = set()
    while True:
        partition = fuse(graph, alone)
        lowered, failed = _lower_groups(partition.groups)
        if not failed:
            break
        alone |= failed
    memory = plan_memory(partition)
    copies = [
        LoweredGroup(FusedGroup((), ()), lower_copy(operand.type), (operand,), ())
        for operand, _ in memory.copies
    ]
    steps = (*lowered, *copies)
    return LoweredModel(graph, num_channels_last, memory, steps, tuple(model_tasks(steps)))


def _num_convolutions(graph: Graph) -> int:
    """Return the number of convolutions whose channels come before space."""
    return sum(map(is_convolution, graph.nodes))


def _lower_groups(groups: tuple[FusedGroup, ...]) -> tuple[list[LoweredGroup], set[Node]]:
    """Return the programs of groups, and the nodes of those that have none.

    Raises:
        ModelError: If a node alone can't be lowered.
    """
    lowered: list[LoweredGroup] = []
    failed: set[Node] = set()
    for group in groups:
        try:
            lowered.append(lower_group(group))
        except ModelError:
            if len(group.nodes) == 1:
                raise
            failed.update(group.nodes)
    return lowered, failed


def _require_static(graph: Graph) -> None:
    for value in graph.inputs:
        if not value.type.is_static:
            raise ModelError(
                f"input {value.name} has the shape {value.type.shape}, which is known only when it"
                " runs",
                advice=f'pass the shape: shapes={{"{value.name}": (...)}}',
            )
