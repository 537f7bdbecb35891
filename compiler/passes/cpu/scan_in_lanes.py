"""Compute a scan along a loop in vectors: prefixes of each vector, and a carry.

    for k in range(n):                          carry[0:8] = 0
        B[k] = (B[k - 1] if k > 0 else 0)       for k_0 in range(n // 8):
            + f(k)                        ->        p = prefixes of f(k_0 * 8 + (0:8))
                                                    B[k_0 * 8 + (0:8)] = carry + p
                                                    carry += the last element of p

A chain of dependent additions then has one addition a vector, and no element is read back from
memory (Blelloch, "Prefix sums and their applications", 1990). The rest of the extent is computed in
shorter vectors. The annotation allows another order of summation; its value is the number of
elements of a step, whole vectors. A loop that does anything else than such a scan stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.core.dtypes import DType, bits
from compiler.ir.core.nodes import (
    Allocate,
    ArithOp,
    BinOp,
    Buffer,
    Call,
    Compare,
    Conditional,
    Expr,
    For,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    StringImm,
    Var,
    seq,
)
from compiler.ir.core.visit import map_stmt, substitute, walk

KEY = "scan_in_lanes"
PREFIXES = "lanes_prefixes"
"""`lanes_prefixes(op, x)`: each lane of `x` combined with the lanes before it."""
LAST = "lanes_last"
"""`lanes_last(x)`: the last lane of `x`, in all lanes."""
_DTYPES: tuple[DType, ...] = ("float32", "float64", "int32", "int64")


@dataclass(frozen=True, slots=True)
class _Scan:
    """The scan of a loop: each element is `op` of the one before, or `start`, and `value`."""

    store: Store
    op: ArithOp
    start: Expr
    value: Expr


def scan_in_lanes(stmt: Stmt, vector_bits: int) -> Stmt:
    """Rewrite the loops with the annotation `scan_in_lanes`."""
    if isinstance(stmt, For) and any(key == KEY for key, _ in stmt.annotations):
        scan = _scan(stmt)
        if scan is not None:
            return _rewritten(stmt, scan, vector_bits // bits(scan.store.buffer.dtype))
    return map_stmt(stmt, lambda child: scan_in_lanes(child, vector_bits), lambda expr: expr)


def _scan(loop: For) -> _Scan | None:
    store = loop.body
    if loop.kind != "serial" or not isinstance(loop.extent, IntImm):
        return None
    if not isinstance(store, Store) or store.buffer.dtype not in _DTYPES:
        return None
    match store.value:
        case BinOp("+" | "*" as op, Conditional(test, before, start), value):
            pass
        case BinOp("+" | "*" as op, value, Conditional(test, before, start)):
            pass
        case _:
            return None
    reads = [node for side in (start, value) for node in walk(side)]
    if any(isinstance(node, Load) and node.buffer == store.buffer for node in reads):
        return None
    if not _is_later(test, loop.var) or not _is_previous(before, store, loop.var):
        return None
    if any(node == loop.var for node in walk(start)):
        return None
    return _Scan(store, op, start, value)


def _is_later(test: Expr, step: Var) -> bool:
    """Return whether a condition excludes the first step alone."""
    match test:
        case Compare("<", IntImm(0), lhs) | Compare(">", lhs, IntImm(0)):
            return affine(lhs) == affine(step)
        case _:
            return False


def _is_previous(expr: Expr, store: Store, step: Var) -> bool:
    """Return whether an expression is the element that the previous step stored."""
    if not isinstance(expr, Load) or expr.buffer != store.buffer:
        return False
    previous = {step: BinOp("-", step, IntImm(1))}
    moved = [affine(substitute(index, previous)) for index in store.indices]
    if not all(map(_equal, map(affine, expr.indices), moved)):
        return False
    return affine(store.indices[-1]).coefficient(step) == 1 and not any(
        node == step for index in store.indices[:-1] for node in walk(index)
    )


def _equal(a: Affine, b: Affine) -> bool:
    difference = a - b
    return not difference.terms and difference.const == 0


def _rewritten(loop: For, scan: _Scan, lanes: int) -> Stmt:
    assert isinstance(loop.extent, IntImm), "the caller checked it"
    requested = dict(loop.annotations)[KEY]
    vectors = max(1, requested // lanes) if isinstance(requested, int) else 1
    dtype = scan.store.buffer.dtype
    carry = Buffer(Var("carry", "handle"), (IntImm(lanes),), dtype, "local")

    def step(begin: Expr, width: int) -> Stmt:
        def run(lane: Expr) -> Stmt:
            here = {loop.var: BinOp("+", begin, lane)}
            value = substitute(scan.value, here)
            prefixes, current = Var("prefixes", dtype), Load(carry, (lane,))
            last = Call(LAST, (prefixes,), dtype)
            indices = tuple(substitute(index, here) for index in scan.store.indices)
            return Let(
                prefixes,
                Call(PREFIXES, (StringImm(scan.op), value), dtype),
                seq(
                    Store(scan.store.buffer, indices, BinOp(scan.op, current, prefixes)),
                    Store(carry, (lane,), BinOp(scan.op, current, last)),
                ),
            )

        return _over(width, run)

    outer, size = Var(f"{loop.var.name}_0"), lanes * vectors
    num_steps, remainder = divmod(loop.extent.value, size)
    first = BinOp("*", outer, IntImm(size))
    body = seq(*(step(BinOp("+", first, IntImm(n * lanes)), lanes) for n in range(vectors)))
    stmts = [_over(lanes, lambda lane: Store(carry, (lane,), scan.start))]
    stmts.append(For(outer, IntImm(num_steps), body))
    offset = num_steps * size
    while remainder:
        width = min(lanes, 1 << (remainder.bit_length() - 1))
        stmts.append(step(IntImm(offset), width))
        offset, remainder = offset + width, remainder - width
    return Allocate(carry, seq(*stmts))


def _over(lanes: int, make: Callable[[Expr], Stmt]) -> Stmt:
    lane = Var("lane")
    return For(lane, IntImm(lanes), make(lane), "vectorized")
