"""Reduce the rows of a fragment: each lane its own elements, then lanes exchange their results.

    for i, j in 16, 8:                     p[0], p[1] = -inf
        M[i] max= S[i, j]           ->     for e in 4:
                                               p[e // 2] max= S[e]
                                           for d in 1, 2:
                                               p[0], p[1] max= those of lane ^ d
                                           M[0] max= p[0]; M[1] max= p[1]

Every lane that holds elements of a row ends with its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import (
    Allocate,
    ArithOp,
    BinOp,
    Buffer,
    Call,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    seq,
    static_shape,
)
from compiler.ir.core.visit import walk
from compiler.passes.common.error import LoweringError
from compiler.passes.device.fragments.held_elements import HeldElement
from compiler.passes.device.fragments.layout import FragmentLayout

_IDENTITIES: dict[ArithOp, float] = {"+": 0.0, "max": -math.inf, "min": math.inf}


def reduced_rows(
    element: HeldElement,
    target: FragmentLayout,
    body: Stmt,
    store: Store,
    around: Callable[[Stmt], Stmt],
) -> Stmt:
    """Lower a nest that reduces the rows of a fragment.

    Args:
        element: The element of a tile that a lane holds.
        target: The registers of the numbers of rows.
        body: The body of the nest.
        store: The store in it.
        around: Puts the loops of the nest around a statement.

    Raises:
        LoweringError: If the store does not add to a row, or take the least or greatest of it.
    """
    op, value = _update(store)
    registers, index = element.register(store)
    partial = Buffer(
        Var(f"{registers.name}_partial", "handle"), registers.shape, registers.dtype, "local"
    )
    new: Stmt = Store(partial, index, BinOp(op, Load(partial, index), element.expr(value)))
    for condition in reversed(_conditions(body)):
        new = If(element.expr(condition), new)
    stmt = seq(
        _for_each(partial, lambda at: Store(partial, at, _identity(op, partial))),
        around(new),
        _for_each(partial, lambda at: _exchanged(op, partial, at, target)),
        _for_each(
            partial,
            lambda at: Store(registers, at, BinOp(op, Load(registers, at), Load(partial, at))),
        ),
    )
    return Allocate(partial, stmt)


def _update(store: Store) -> tuple[ArithOp, Expr]:
    """Return the operation of a reduction and what it reduces."""
    value, row = store.value, Load(store.buffer, store.indices)
    if isinstance(value, BinOp) and value.op in _IDENTITIES and is_float(store.buffer.dtype):
        for one, other in ((value.lhs, value.rhs), (value.rhs, value.lhs)):
            is_self = any(isinstance(n, Load) and n.buffer == store.buffer for n in walk(other))
            if one == row and not is_self:
                return value.op, other
    raise LoweringError(
        f"{store.buffer.name} has a number for each row of a fragment, but its computation from "
        "elements is not their sum, minimum or maximum: compute the start in another loop"
    )


def _conditions(body: Stmt) -> list[Expr]:
    """Return the conditions around a store, the outermost first."""
    conditions = []
    while isinstance(body, If):
        conditions.append(body.condition)
        body = body.then
    return conditions


def _identity(op: ArithOp, buffer: Buffer) -> Expr:
    return FloatImm(_IDENTITIES[op], buffer.dtype)


def _exchanged(op: ArithOp, partial: Buffer, at: tuple[Expr, ...], target: FragmentLayout) -> Stmt:
    """Combine the results of the lanes that hold elements of one row."""
    steps: list[Stmt] = []
    weight = 1
    for extent, step in target.map.lane:
        distance = weight
        while step == (0, 0) and distance < weight * extent:
            old = Load(partial, at)
            other = Var(f"{partial.name}_other", partial.dtype)
            received = Call("shuffle_xor", (old, IntImm(distance)), partial.dtype)
            steps.append(Let(other, received, Store(partial, at, BinOp(op, old, other))))
            distance *= 2
        weight *= extent
    return seq(*steps)


def _for_each(buffer: Buffer, body: Callable[[tuple[Expr, ...]], Stmt]) -> Stmt:
    """Run a statement for each register of an array."""
    row = Var("row")
    (count,) = static_shape(buffer)
    return For(row, IntImm(count), body((row,)), "unrolled")
