"""All rewrites in their order: what a graph goes through before fusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from compiler.graph.nodes import Graph
from compiler.graph.rewrite.cancel_movement import cancel_movement
from compiler.graph.rewrite.drop_empty import drop_empty
from compiler.graph.rewrite.fold_constants import fold_constants
from compiler.graph.rewrite.fold_scale import fold_scale
from compiler.graph.rewrite.integer_products import integer_products
from compiler.graph.rewrite.match_activations import match_activations
from compiler.graph.rewrite.match_norms import match_norms
from compiler.graph.rewrite.move_quantization import move_quantization
from compiler.graph.rewrite.push_strides import push_strides
from compiler.graph.rewrite.remove_dead import remove_dead
from compiler.graph.rewrite.share_common import share_common
from compiler.graph.rewrite.split_batch_norm import split_batch_norm

Rewrite: TypeAlias = Callable[[Graph], Graph]

REWRITES: tuple[Rewrite, ...] = (
    remove_dead,
    drop_empty,
    # Before weights become floats.
    move_quantization,
    integer_products,
    fold_constants,
    cancel_movement,
    share_common,
    # Before factors are moved: these patterns have factors of their own.
    match_norms,
    match_activations,
    split_batch_norm,
    fold_scale,
    push_strides,
    remove_dead,
)
MAX_ROUNDS = 8
"""Rounds of all rewrites: one enables another, but rarely more than a few times. Chosen."""


def simplify(graph: Graph) -> Graph:
    """Return a graph that computes the same with fewer nodes."""
    for _ in range(MAX_ROUNDS):
        before = graph.nodes
        for rewrite in REWRITES:
            graph = rewrite(graph)
        if graph.nodes == before:
            break
    return graph
