"""Which buffers hold only integers from 0 to 127: sums of two products of bytes then fit 16 bits.

clamped[i] = min(A[i], 127)       # unsigned
panel[j] = clamped[j]             # only such values, whatever `A` holds
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from compiler.ir.core.dtypes import is_integer, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Buffer,
    Cast,
    Conditional,
    Expr,
    IntImm,
    Load,
    Select,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import walk

LARGEST = 127


def small_buffers(stmt: Stmt, params: Collection[Buffer]) -> frozenset[Buffer]:
    """Return the buffers of bytes that a program writes, and in which all values are small.

    All are assumed to be, and buffers that contradict that are removed until none is left: the
    first large value in a buffer would come from a store whose operands are small.

    Args:
        stmt: The program.
        params: Its parameters, whose values are unknown. Without bytes among them, the result is
            empty: most programs have none, and are not searched.
    """
    if all(param.dtype != "uint8" for param in params):
        return frozenset()
    stores: dict[Buffer, list[Expr]] = defaultdict(list)
    addresses: set[Var] = set()
    aliases: dict[Var, set[Buffer]] = defaultdict(set)
    for node in walk(stmt):
        match node:
            case Store(buffer, _, value):
                stores[buffer].append(value)
                aliases[buffer.data].add(buffer)
            case Load(buffer, _):
                aliases[buffer.data].add(buffer)
            case Var():
                addresses.add(node)
            case _:
                pass
    small = {
        buffer
        for buffer in stores
        if buffer.dtype == "uint8" and buffer not in params and buffer.data not in addresses
        if len(aliases[buffer.data]) == 1
    }
    while True:
        large = {b for b in small if not all(is_small(value, small) for value in stores[b])}
        if not large:
            return frozenset(small)
        small -= large


def is_small(expr: Expr, small: Collection[Buffer]) -> bool:
    """Return whether an integer is from 0 to 127, for which `small` buffers hold only such ones."""
    match expr:
        case IntImm(value):
            return 0 <= value <= LARGEST
        case Load(buffer, _):
            return buffer in small
        case Cast(dtype, inner):
            return is_integer(dtype) and is_small(inner, small)
        case Broadcast(inner, _):
            return is_small(inner, small)
        case BinOp("min", lhs, rhs):
            are_small = is_small(lhs, small), is_small(rhs, small)
            is_natural = all(
                one or not is_signed(dtype_of(side))
                for one, side in zip(are_small, (lhs, rhs), strict=True)
            )
            return any(are_small) and is_natural
        case BinOp("max", lhs, rhs) | Select(_, lhs, rhs) | Conditional(_, lhs, rhs):
            return is_small(lhs, small) and is_small(rhs, small)
        case _:
            return False
