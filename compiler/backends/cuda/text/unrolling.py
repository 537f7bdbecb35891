"""Choose loops to unroll, and how far.

An array of a thread stays in registers if its indices are constants:

for k in 16:                        #pragma unroll
    C_local[k] += A_local[k]   ->   for (int k = 0; k < 16; ++k) C_local[k] += A_local[k];

So serial loops over such arrays are unrolled, too. Loops that the program unrolls are unrolled as
far as their code stays small.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.core.nodes import (
    BinOp,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import statements_in, walk

# NVRTC takes about 0.2 ms for each multiply-add of unrolled code on one core, and about 2 ms for
# one under a condition; a division costs as much as a multiply-add (measured on 24 products and
# convolutions). Arrays of larger loops stay in local memory; loops that index none are unrolled as
# far as their code takes 100 ms.
MOST_FOR_REGISTERS = 1024
MOST_UNROLLED = 512
CONDITION_COST = 8


def loops_to_unroll(body: Stmt) -> dict[Var, int]:
    """Return the variables of loops that could be unrolled, with the number of copies of each.

    One copy prevents the compiler from unrolling a loop on its own initiative.
    """
    chosen: dict[Var, int] = {}
    _unrolled(body, chosen)
    return chosen


@dataclass(frozen=True, slots=True)
class _Unrolled:
    """What a statement is after unrolling.

    Attributes:
        cost: The cost of its code, in stores of multiply-adds.
        indexing: The variables that index local arrays.
    """

    cost: int
    indexing: frozenset[Var]


def _unrolled(stmt: Stmt, chosen: dict[Var, int]) -> _Unrolled:
    parts = [_unrolled(part, chosen) for part in statements_in(stmt)]
    cost = sum(part.cost for part in parts)
    indexing = frozenset().union(*(part.indexing for part in parts))
    match stmt:
        case Store() | Evaluate():
            return _Unrolled(1 + _num_divisions(stmt), indexing | _local_indices(stmt))
        case If(condition):
            return _Unrolled(cost + CONDITION_COST + _num_divisions(condition), indexing)
        case For(var, IntImm(extent), _, kind):
            copies = _copies(var, extent, kind, _Unrolled(cost, indexing))
            if kind == "unrolled" or (kind == "serial" and var in indexing):
                chosen[var] = copies
            return _Unrolled(cost * copies, indexing)
        case _:
            return _Unrolled(cost, indexing)


def _copies(var: Var, extent: int, kind: LoopKind, body: _Unrolled) -> int:
    """Return how many copies of its body a loop has."""
    if kind == "vectorized":
        return extent
    if var in body.indexing:
        is_small = body.cost * extent <= MOST_FOR_REGISTERS
        return extent if kind == "unrolled" or is_small else 1
    if kind != "unrolled":
        return 1
    most = min(extent, MOST_UNROLLED // max(body.cost, 1))
    return max((n for n in range(1, most + 1) if extent % n == 0), default=1)


def _num_divisions(node: Stmt | Expr) -> int:
    return sum(isinstance(part, BinOp) and part.op in ("//", "%") for part in walk(node))


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
