"""The names that primitives give to blocks."""

from __future__ import annotations


def later_names(block: str) -> tuple[str, ...]:
    """Return the names of a block that computes: `decompose_reduction` and `blockize` rename it."""
    return block, f"{block}_update", f"{block}_update_o"
