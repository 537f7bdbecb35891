"""Memory scopes: which threads of a GPU's block see one copy of a buffer.

"shared" memory is common to the threads of a block. In "local" memory each thread has a copy.

A fragment ("wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator") is a tile in the registers of a
warp. A program has no loops over the lanes around it: a loop over threads there counts warps, each
of which has a copy. So a fragment is private as local memory is. A number for each row of sums
("wmma.accumulator_rows") is in the registers of those lanes that hold elements of the row.
"""

from __future__ import annotations

MATRIX_A = "wmma.matrix_a"
MATRIX_B = "wmma.matrix_b"
ACCUMULATOR = "wmma.accumulator"
ACCUMULATOR_ROWS = "wmma.accumulator_rows"
FRAGMENTS = (MATRIX_A, MATRIX_B, ACCUMULATOR, ACCUMULATOR_ROWS)


def is_shared_scope(scope: str) -> bool:
    """Return whether the threads of a block share memory of a scope."""
    return scope.startswith(("shared", "warp"))


def is_private_scope(scope: str) -> bool:
    """Return whether each thread (for fragments: each warp) has a copy of memory of a scope."""
    return scope.startswith("local") or is_fragment_scope(scope)


def is_fragment_scope(scope: str) -> bool:
    """Return whether memory of a scope is a tile, or its rows, in the registers of a warp."""
    return scope in FRAGMENTS
