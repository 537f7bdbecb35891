"""Count the arithmetic of a block at a point, by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    Load,
    Logic,
    Not,
    Select,
)
from compiler.ir.core.visit import children


@dataclass(frozen=True)
class Operations:
    """The number of operations of each kind at a point, without those on indices.

    Attributes:
        fma: Products that are added or subtracted at once.
        add: Sums and differences of floats.
        mul: Products of floats.
        div: Quotients of floats.
        special: Calls of functions, such as `exp`.
        compare: Comparisons, choices, minima and maxima.
        integer: Other operations on integers.
        convert: Conversions between types.
    """

    fma: int = 0
    add: int = 0
    mul: int = 0
    div: int = 0
    special: int = 0
    compare: int = 0
    integer: int = 0
    convert: int = 0

    @property
    def total(self) -> int:
        """Return the number of all operations."""
        simple = self.fma + self.add + self.mul + self.div
        return simple + self.special + self.compare + self.integer + self.convert


def operations(values: list[Expr]) -> Operations:
    """Count the operations to compute some values at one point, including both sides of choices."""
    return Operations(**Counter(kind for value in values for kind in _kinds(value)))


def _kinds(expr: Expr) -> Iterator[str]:
    if isinstance(expr, Load):
        return  # operations below are on indices
    inner: list[Expr] = list(children(expr))  # type: ignore[arg-type]
    kind = _kind(expr)
    if kind == "add":
        products = [child for child in inner if _kind(child) == "mul"]
        if products:
            kind = "fma"
            inner.remove(products[0])
            inner += children(products[0])  # type: ignore[arg-type]
    if kind is not None:
        yield kind
    for child in inner:
        yield from _kinds(child)


def _kind(expr: Expr) -> str | None:
    match expr:
        case BinOp(op):
            if op in ("min", "max"):
                return "compare"
            if not is_float(dtype_of(expr)):
                return "integer"
            return {"+": "add", "-": "add", "*": "mul"}.get(op, "div")
        case Compare() | Logic() | Not() | Select() | Conditional():
            return "compare"
        case Call():
            return "special"
        case Cast():
            return "convert"
        case _:
            return None
