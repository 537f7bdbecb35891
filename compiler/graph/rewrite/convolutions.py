"""Facts about convolutions and about the maps between them, for rewrites."""

from __future__ import annotations

from compiler.graph.nodes import Node
from compiler.graph.operator import find_operator

CONVOLUTIONS = frozenset(f"nn.conv{rank}d" for rank in (1, 2, 3))
_PLACES = frozenset({"axis", "k"})
"""Attributes of maps that depend on the axes or on positions along them: `tril` has a diagonal."""


def is_convolution(node: Node) -> bool:
    """Return whether a node is a convolution of images whose channels come before space."""
    return node.op in CONVOLUTIONS and str(node.attrs["data_layout"]).startswith("NC")


def is_pointwise(node: Node) -> bool:
    """Return whether such a convolution reads a single pixel for each pixel of its result."""
    window = node.operands[1].type.shape[2:]
    padding = node.attrs["padding"]
    return all(n == 1 for n in window) and isinstance(padding, tuple) and not any(padding)


def is_plain_map(node: Node) -> bool:
    """Return whether a node computes each element from those at the same place, wherever it is."""
    return find_operator(node.op).kind == "map" and not _PLACES & node.attrs.keys()
