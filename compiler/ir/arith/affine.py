"""Linear normal form of integer expressions: a constant plus coefficients times atoms.

An atom is whatever is not linear: a variable, a load, `x // c`, `x % c`, `min(x, y)`, ...
Two expressions are equal as integers if their normal forms are equal (not the other way round).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import BinOp, Expr, IntImm


@frozen
class Affine:
    """The sum of `const` and of `coefficient * atom` over `terms`; no coefficient is zero."""

    terms: tuple[tuple[Expr, int], ...]
    const: int
    dtype: DType = "int32"

    def __add__(self, other: Affine) -> Affine:
        """Add two forms."""
        if not other.terms:
            return Affine(self.terms, self.const + other.const, self.dtype)
        return from_terms((*self.terms, *other.terms), self.const + other.const, self.dtype)

    def __sub__(self, other: Affine) -> Affine:
        """Subtract a form."""
        return self + other.scaled(-1)

    def scaled(self, factor: int) -> Affine:
        """Multiply by a constant."""
        if factor == 1:
            return self
        terms = tuple((a, c * factor) for a, c in self.terms) if factor else ()
        return Affine(terms, self.const * factor, self.dtype)

    def coefficient(self, atom: Expr) -> int:
        """Return the coefficient of an atom, zero if it does not occur."""
        return next((c for a, c in self.terms if a == atom), 0)

    def multiples(self, other: Affine) -> Iterator[Affine]:
        """Yield the form, and its multiples by positive factors that cancel a term of another."""
        yield self
        ratios = {other.coefficient(atom) / coefficient for atom, coefficient in self.terms}
        factors = (int(ratio) for ratio in ratios if ratio > 1 and ratio.is_integer())
        yield from map(self.scaled, factors)

    def to_expr(self) -> Expr:
        """Return the expression, atoms in their order, the constant last.

        The constant comes first where nothing is added to it: `63 - i`.
        """
        total: Expr | None = None
        if self.const > 0 and self.terms and all(c < 0 for _, c in self.terms):
            total = IntImm(self.const, self.dtype)
            for atom, coefficient in self.terms:
                total = _plus(total, atom, coefficient, self.dtype)
            return total
        for atom, coefficient in self.terms:
            total = _plus(total, atom, coefficient, self.dtype)
        if total is None:
            return IntImm(self.const, self.dtype)
        if self.const == 0:
            return total
        op = "+" if self.const > 0 else "-"
        return BinOp(op, total, IntImm(abs(self.const), self.dtype))  # type: ignore[arg-type]


def _plus(total: Expr | None, atom: Expr, coefficient: int, dtype: DType) -> Expr:
    if total is not None and coefficient < 0:
        return BinOp("-", total, _times(atom, -coefficient, dtype))
    term = _times(atom, coefficient, dtype)
    return term if total is None else BinOp("+", total, term)


def _times(atom: Expr, coefficient: int, dtype: DType) -> Expr:
    return atom if coefficient == 1 else BinOp("*", atom, IntImm(coefficient, dtype))


def from_terms(terms: Iterable[tuple[Expr, int]], const: int, dtype: DType = "int32") -> Affine:
    """Collect equal atoms and drop those whose coefficients cancel."""
    total: dict[Expr, int] = {}
    for atom, coefficient in terms:
        total[atom] = total.get(atom, 0) + coefficient
    return Affine(tuple((a, c) for a, c in total.items() if c), const, dtype)


def affine(expr: Expr) -> Affine:
    """Return the linear normal form of an integer expression; its atoms are taken as they are."""
    if isinstance(expr, IntImm):
        return Affine((), expr.value, expr.dtype)
    if not isinstance(expr, BinOp) or expr.op not in ("+", "-", "*"):
        return Affine(((expr, 1),), 0, dtype_of(expr))
    terms: dict[Expr, int] = {}
    const = _collect(expr, 1, terms)
    return Affine(tuple((a, c) for a, c in terms.items() if c), const, dtype_of(expr))


def _collect(expr: Expr, factor: int, terms: dict[Expr, int]) -> int:
    """Add the terms of `factor * expr` to others; return its constant part."""
    if isinstance(expr, IntImm):
        return factor * expr.value
    if isinstance(expr, BinOp):
        op, lhs, rhs = expr.op, expr.lhs, expr.rhs
        if op in ("+", "-"):
            sign = factor if op == "+" else -factor
            return _collect(lhs, factor, terms) + _collect(rhs, sign, terms)
        if op == "*":
            a, b = affine(lhs), affine(rhs)
            if a.terms and b.terms:
                expr = BinOp("*", a.to_expr(), b.to_expr())
            else:
                form, scale = (a, factor * b.const) if not b.terms else (b, factor * a.const)
                for atom, coefficient in form.terms:
                    terms[atom] = terms.get(atom, 0) + scale * coefficient
                return scale * form.const
    terms[expr] = terms.get(expr, 0) + factor
    return 0
