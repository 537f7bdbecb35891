"""Choose loops to unroll, and how far.

An array of a thread stays in registers if its indices are constants:

for k in 16:                        #pragma unroll
    C_local[k] += A_local[k]   ->   for (int k = 0; k < 16; ++k) C_local[k] += A_local[k];

So serial loops over such arrays are unrolled, too. Loops that the program unrolls are unrolled as
far as their code stays small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.ir.core.nodes import (
    BinOp,
    Conditional,
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
# convolutions). Copies of code with equal values share the divisions and the conditions of values.
# Arrays of larger loops stay in local memory; loops that index none are unrolled as far as their
# code takes 100 ms.
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
class _SharedValue:
    """A value that a compiler computes once for all copies of code that have it."""

    cost: int
    variables: frozenset[Var]


@dataclass(frozen=True, slots=True)
class _Unrolled:
    """What a statement is after unrolling.

    Attributes:
        own_cost: The cost of its code besides shared values, in stores of multiply-adds.
        shared: The divisions and conditions of values, with their variables and costs: a compiler
            computes equal ones once.
        indexing: The variables that index local arrays.
    """

    own_cost: int
    shared: Mapping[Expr, _SharedValue]
    indexing: frozenset[Var]

    @property
    def cost(self) -> int:
        """Return the cost of its code."""
        return self.own_cost + sum(value.cost for value in self.shared.values())

    def repeated(self, var: Var, copies: int) -> _Unrolled:
        """Return copies for several values of a variable."""
        shared = {
            expr: _SharedValue(value.cost * copies, value.variables)
            if copies > 1 and var in value.variables
            else value
            for expr, value in self.shared.items()
        }
        return _Unrolled(self.own_cost * copies, shared, self.indexing)


def _unrolled(stmt: Stmt, chosen: dict[Var, int]) -> _Unrolled:
    parts = [_unrolled(part, chosen) for part in statements_in(stmt)]
    own_cost = sum(part.own_cost for part in parts)
    indexing = frozenset().union(*(part.indexing for part in parts))
    shared = {expr: value for part in parts for expr, value in part.shared.items()}
    match stmt:
        case Store() | Evaluate():
            return _Unrolled(1, _shared(stmt), _local_indices(stmt))
        case If(condition):
            return _Unrolled(own_cost + CONDITION_COST, shared | _shared(condition), indexing)
        case For(var, IntImm(extent), _, kind):
            body = _Unrolled(own_cost, shared, indexing)
            copies = _copies(var, extent, kind, body)
            if kind == "unrolled" or (kind == "serial" and var in indexing):
                chosen[var] = copies
            return body.repeated(var, copies)
        case _:
            return _Unrolled(own_cost, shared, indexing)


def _copies(var: Var, extent: int, kind: LoopKind, body: _Unrolled) -> int:
    """Return how many copies of its body a loop has."""
    if kind == "vectorized":
        return extent
    if var in body.indexing:
        is_small = body.repeated(var, extent).cost <= MOST_FOR_REGISTERS
        return extent if kind == "unrolled" or is_small else 1
    if kind != "unrolled":
        return 1
    divisors = (n for n in range(min(extent, MOST_UNROLLED), 1, -1) if extent % n == 0)
    return next((n for n in divisors if body.repeated(var, n).cost <= MOST_UNROLLED), 1)


def _shared(node: Stmt | Expr) -> dict[Expr, _SharedValue]:
    """Return the divisions and conditions of values in a node."""
    costs: dict[Expr, int] = {}
    for part in walk(node):
        if isinstance(part, BinOp) and part.op in ("//", "%"):
            costs[part] = 1
        elif isinstance(part, Conditional):
            costs[part.condition] = CONDITION_COST
    return {expr: _SharedValue(cost, _variables(expr)) for expr, cost in costs.items()}


def _variables(expr: Expr) -> frozenset[Var]:
    return frozenset(node for node in walk(expr) if isinstance(node, Var))


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
