"""Choose loops to unroll: an array of a thread stays in registers if its indices are constants.

for k in 16:                        #pragma unroll
    C_local[k] += A_local[k]   ->   for (int k = 0; k < 16; ++k) C_local[k] += A_local[k];
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.nodes import Evaluate, For, IntImm, Load, Stmt, Store, Var
from compiler.ir.core.visit import statements_in, walk

# NVRTC takes about 0.1 ms for each multiply-add of unrolled code: 93 ms of CPU for a matrix product
# with 1024 of them, 459 ms at most on a slow core. Arrays of larger loops stay in local memory.
MOST_UNROLLED = 2048


def loops_to_unroll(body: Stmt) -> set[Var]:
    """Return the variables of serial loops that should be unrolled."""
    chosen: set[Var] = set()
    _unrolled(body, chosen)
    return chosen


@dataclass(frozen=True, slots=True)
class _Unrolled:
    """What a statement is after unrolling: its stores, and variables that index local arrays."""

    stores: int
    indexing: frozenset[Var]


def _unrolled(stmt: Stmt, chosen: set[Var]) -> _Unrolled:
    parts = [_unrolled(part, chosen) for part in statements_in(stmt)]
    stores = sum(part.stores for part in parts)
    indexing = frozenset().union(*(part.indexing for part in parts))
    match stmt:
        case Store() | Evaluate():
            return _Unrolled(stores + 1, indexing | _local_indices(stmt))
        case For(var, IntImm(extent), _, kind):
            if kind != "serial":
                return _Unrolled(stores * extent, indexing)
            if var in indexing and stores * extent <= MOST_UNROLLED:
                chosen.add(var)
                return _Unrolled(stores * extent, indexing)
            return _Unrolled(stores, indexing)
        case _:
            return _Unrolled(stores, indexing)


def _local_indices(stmt: Store | Evaluate) -> frozenset[Var]:
    accesses = [node for node in walk(stmt) if isinstance(node, Load | Store)]
    return frozenset(
        node
        for access in accesses
        if access.buffer.scope == "local"
        for index in access.indices
        for node in walk(index)
        if isinstance(node, Var)
    )
