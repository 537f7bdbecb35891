"""Print vectorized loops: contiguous elements are loaded and stored by one instruction.

for v in vectorized(4):               const vec<float, 4> A_vec = load_vec<4>(&A[i * 4]);
    B[i * 4 + v] = A[i * 4 + v]   ->  vec<float, 4> B_vec;
                                      for (int v = 0; v < 4; ++v) B_vec[v] = A_vec[v];
                                      store_vec(&B[i * 4], B_vec);
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

from compiler.backends.cuda.text.indices import flat_index
from compiler.backends.cuda.text.scope import KernelScope
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Buffer,
    Cast,
    Compare,
    Conditional,
    Expr,
    For,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Store,
    Var,
)
from compiler.ir.core.visit import map_expr, operands_of, substitute, walk

MAX_VECTOR_BYTES = 16
GLOBAL_ALIGNMENT = 16
"""The alignment in bytes that kernels require of arrays; allocators give 64 or 256."""


@dataclass(frozen=True, slots=True)
class VectorLoad:
    """A load of contiguous elements, done if all `guards` hold."""

    load: Load
    guards: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class VectorPlan:
    """The instructions of a vectorized store.

    Attributes:
        lanes: The number of lanes of an instruction; it divides the extent of the loop.
        loads: The loads that take all lanes at once.
        stores: Whether the store does.
    """

    lanes: int
    loads: tuple[VectorLoad, ...]
    stores: bool


def plan_vectors(var: Var, extent: int, store: Store, scope: KernelScope) -> VectorPlan | None:
    """Return how to run a store for all values of `var` at once; None if no access is contiguous.

    The loop has `extent` iterations, whose order does not matter.
    """
    guards_of: dict[Load, set[tuple[Expr, ...]]] = {}
    for load, guards in _loads(store.value, ()):
        guards_of.setdefault(load, set()).add(guards)
    widths = {load: _width(var, extent, load, scope) for load in guards_of}
    wide_loads = [
        VectorLoad(load, guards)
        for load, (guards, *others) in guards_of.items()
        # A load under several conditions would need their disjunction.
        if widths[load] > 1 and not others and not any(var in walk(guard) for guard in guards)
    ]
    store_width = _width(var, extent, store, scope)
    chosen = [widths[wide.load] for wide in wide_loads]
    if store_width > 1:
        chosen.append(store_width)
    if not chosen:
        return None
    return VectorPlan(min(chosen), tuple(wide_loads), store_width > 1)


def in_all_lanes(condition: Expr, var: Var, extent: int) -> Expr | None:
    """Return a condition that holds if one holds in all lanes; None if no simple one is known.

    A comparison that a lane may change is that of the last lane, or of the first one:

        i * 4 + v < n   ->   i * 4 + 3 < n
    """
    match condition:
        case _ if var not in walk(condition):
            return condition
        case Logic("and", lhs, rhs):
            both = [in_all_lanes(side, var, extent) for side in (lhs, rhs)]
            first, second = both
            return None if first is None or second is None else Logic("and", first, second)
        case Compare("<" | "<=" | ">" | ">=" as op, lhs, rhs):
            form = normal(lhs, {var: extent}) - normal(rhs, {var: extent})
            if any(var in walk(atom) for atom, _ in form.terms if atom != var):
                return None
            grows = form.coefficient(var) > 0
            lane = extent - 1 if grows == (op in ("<", "<=")) else 0
            return substitute(condition, {var: IntImm(lane, dtype_of(var))})
        case _:
            return None


def _loads(expr: Expr, guards: tuple[Expr, ...]) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
    """Yield the loads of an expression, and the conditions under which each is evaluated."""
    match expr:
        case Load():
            yield expr, guards
        case Conditional(condition, then, otherwise):
            yield from _loads(condition, guards)
            yield from _loads(then, (*guards, condition))
            yield from _loads(otherwise, (*guards, Not(condition)))
        case _:
            for operand in operands_of(expr):
                yield from _loads(operand, guards)


def _width(var: Var, extent: int, access: Load | Store, scope: KernelScope) -> int:
    """Return the number of elements that one instruction may access; 1 without vectors."""
    buffer = access.buffer
    if buffer.scope == "local":
        return 1  # registers
    form = flat_index(buffer, access.indices, scope)
    rest = tuple((atom, scale) for atom, scale in form.terms if atom != var)
    if form.coefficient(var) != 1 or any(var in walk(atom) for atom, _ in rest):
        return 1
    most = MAX_VECTOR_BYTES // size_bytes(buffer.dtype)
    return gcd(most, extent, _alignment(buffer, scope), form.const, *(c for _, c in rest))


def _alignment(buffer: Buffer, scope: KernelScope) -> int:
    """Return the alignment of a buffer in elements."""
    size = size_bytes(buffer.dtype)
    offset = scope.shared_offsets.get(buffer, 0)
    return max(1, gcd(GLOBAL_ALIGNMENT, offset) // size)


def first_lane(var: Var, form: Affine) -> Affine:
    """Return the position of the first lane."""
    return replace(form, terms=tuple((a, c) for a, c in form.terms if a != var))


def as_loop(store: Store, lanes: int) -> For:
    """Return a store of vectors as a vectorized loop over scalars."""
    var = Var("lane")
    indices = tuple(_lane(index, var) for index in store.indices)
    body = Store(store.buffer, indices, _lane(store.value, var))
    return For(var, IntImm(lanes), body, "vectorized")


def _lane(expr: Expr, var: Var) -> Expr:
    """Return the value of one lane of a vector."""
    match expr:
        case Ramp(base, stride, _):
            return BinOp("+", base, BinOp("*", _as_type(var, base), _stride(stride, base)))
        case Broadcast(value, _):
            return value
        case _:
            return map_expr(expr, lambda e: _lane(e, var))


def _as_type(var: Var, base: Expr) -> Expr:
    dtype = dtype_of(base)
    return var if dtype == var.dtype else Cast(dtype, var)


def _stride(stride: int, base: Expr) -> IntImm:
    return IntImm(stride, dtype_of(base))
