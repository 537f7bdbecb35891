"""Post-dominators: the node that all paths from a node to the results pass through."""

from __future__ import annotations

from collections.abc import Sequence


def post_dominators(successors: Sequence[Sequence[int]]) -> list[int]:
    """Return the immediate post-dominator of each node of a directed acyclic graph.

    Args:
        successors: The successors of each node, all later in the order; the number of nodes stands
            for the exit.
    """
    count = len(successors)
    immediate, depths = [count] * (count + 1), [0] * (count + 1)
    for node in reversed(range(count)):
        following = list(successors[node]) or [count]
        meeting = following[0]
        for other in following[1:]:
            meeting = _meet(meeting, other, immediate, depths)
        immediate[node], depths[node] = meeting, depths[meeting] + 1
    return immediate[:count]


def _meet(a: int, b: int, immediate: Sequence[int], depths: Sequence[int]) -> int:
    """Return the nearest common post-dominator of two nodes."""
    while a != b:
        if depths[a] < depths[b]:
            a, b = b, a
        a = immediate[a]
    return a


def between(successors: Sequence[Sequence[int]], start: int, end: int) -> list[int]:
    """Return the nodes on paths from `start` to its post-dominator `end`, with `end`, in order."""
    nodes = {end}
    stack = [node for node in successors[start] if node != end]
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.add(node)
            stack += [following for following in successors[node] if following != end]
    return sorted(nodes)
