"""All rewrites in their order: what a graph goes through before fusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from compiler.graph.nodes import Graph
from compiler.graph.rewrite.fold_constants import fold_constants
from compiler.graph.rewrite.remove_dead import remove_dead
from compiler.graph.rewrite.share_common import share_common

Rewrite: TypeAlias = Callable[[Graph], Graph]

REWRITES: tuple[Rewrite, ...] = (remove_dead, fold_constants, share_common, remove_dead)
MAX_ROUNDS = 4
"""Rounds of all rewrites: one enables another, but rarely more than twice. Chosen."""


def simplify(graph: Graph) -> Graph:
    """Return a graph that computes the same with fewer nodes."""
    for _ in range(MAX_ROUNDS):
        before = graph.nodes
        for rewrite in REWRITES:
            graph = rewrite(graph)
        if graph.nodes == before:
            break
    return graph
