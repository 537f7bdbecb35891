"""Extents of tensors: integers, or integer expressions over symbolic variables.

A symbolic extent is an expression over variables of type int64, in the normal form of `simplify`,
so that equal extents compare equal in most cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import ArithOp, BinOp, Expr, IntImm, Var
from compiler.ir.core.visit import map_expr
from compiler.ir.text.print_expr import show_expr

Extent: TypeAlias = int | Expr
Shape: TypeAlias = tuple[Extent, ...]


def symbol(name: str) -> Var:
    """Return a new symbolic extent; two of the same name are two extents."""
    return Var(name, "int64")


def add(left: Extent, right: Extent) -> Extent:
    """Return the sum of two extents."""
    return _combined("+", left, right)


def subtract(left: Extent, right: Extent) -> Extent:
    """Return the difference of two extents."""
    return _combined("-", left, right)


def multiply(left: Extent, right: Extent) -> Extent:
    """Return the product of two extents."""
    return _combined("*", left, right)


def floor_divide(left: Extent, right: Extent) -> Extent:
    """Return the quotient of two extents, rounded down."""
    return _combined("//", left, right)


def product(extents: Iterable[Extent]) -> Extent:
    """Return the product of extents: the number of elements of a shape."""
    result: Extent = 1
    for extent in extents:
        result = multiply(result, extent)
    return result


def exact_quotient(extents: Iterable[Extent], divisors: Iterable[Extent]) -> Extent:
    """Return the product of extents over that of divisors, which divides it.

    Common factors cancel, because no extent is 0: (batch, 4, 6) over (batch, 2) is 12.
    """
    factors, remaining = _factors(extents), []
    for divisor in _factors(divisors):
        if divisor in factors:
            factors.remove(divisor)
        else:
            remaining.append(divisor)
    return floor_divide(product(factors), product(remaining))


def _factors(extents: Iterable[Extent]) -> list[Extent]:
    """Return the symbolic factors of a product, and the product of its integers."""
    symbolic: list[Extent] = []
    number = 1
    stack = list(extents)
    while stack:
        extent = stack.pop()
        if isinstance(extent, int):
            number *= extent
        elif isinstance(extent, IntImm):
            number *= extent.value
        elif isinstance(extent, BinOp) and extent.op == "*":
            stack += [extent.lhs, extent.rhs]
        else:
            symbolic.append(extent)
    return [*symbolic, number]


def is_static(shape: Shape) -> bool:
    """Return whether all extents of a shape are integers."""
    return all(isinstance(extent, int) for extent in shape)


def static(shape: Shape) -> tuple[int, ...]:
    """Return a shape of integers; it is a bug to call this for a symbolic shape."""
    assert is_static(shape), f"a shape of integers, not {shape}"
    return tuple(extent for extent in shape if isinstance(extent, int))


def substitute(extent: Extent, values: Mapping[Var, Extent]) -> Extent:
    """Return an extent with some of its variables replaced."""
    if isinstance(extent, int):
        return extent

    def replaced(expr: Expr) -> Expr:
        if isinstance(expr, Var) and expr in values:
            return _expr(values[expr])
        return map_expr(expr, replaced)

    return _extent(simplify(replaced(extent)))


def show_shape(shape: Iterable[Extent]) -> str:
    """Return a shape for messages, as tuples are written."""
    texts = [show_extent(extent) for extent in shape]
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def show_extent(extent: Extent) -> str:
    """Return an extent for messages, its constants as plain numbers."""
    if isinstance(extent, int):
        return str(extent)
    return re.sub(r"T\.int64\((-?\d+)\)", r"\1", show_expr(extent))


def _combined(op: ArithOp, left: Extent, right: Extent) -> Extent:
    if isinstance(left, int) and isinstance(right, int):
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case _:
                return left // right
    return _extent(simplify(BinOp(op, _expr(left), _expr(right))))


def _expr(extent: Extent) -> Expr:
    return IntImm(extent, "int64") if isinstance(extent, int) else extent


def _extent(expr: Expr) -> Extent:
    return expr.value if isinstance(expr, IntImm) else expr
