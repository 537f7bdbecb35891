"""Simplify expressions: normal form for integers; `//`, `%`, `min`, comparisons by bounds.

Variables have ranges here, and nothing else is known of them; conclusions from conditions are in
`compiler.ir.arith.facts`. Quotients and remainders are the splits of `compiler.ir.arith.iter_map`.

Example, with `i` below 4 and `j` below 8:

    (i * 8 + j) // 8           is i
    (i * 8 + j) % 4            is j % 4
    i // 2 * 16 + i % 2 * 8    is i * 8
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from compiler.ir.arith.affine import Affine, affine, from_terms
from compiler.ir.arith.bounds import FixedRanges, Ranges, affine_bounds
from compiler.ir.arith.iter_map import Peeled, peel
from compiler.ir.arith.overflow import may_wrap
from compiler.ir.core.dtypes import DType, is_integer, wrapped
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    FALSE,
    TRUE,
    BinOp,
    Cast,
    Compare,
    CompareOp,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Logic,
    Not,
    Select,
    Var,
)
from compiler.ir.core.visit import map_expr

_NOTHING: Mapping[Var, int] = {}
_NEGATED: dict[CompareOp, CompareOp] = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    "<=": ">",
    ">": "<=",
}


def simplify(expr: Expr, ranges: Ranges = _NOTHING) -> Expr:
    """Return an expression of the same value wherever variables lie in `ranges`.

    Integer expressions come out in linear normal form. Floating-point arithmetic is left as it
    stands, and so is what may wrap around, since they do not obey the laws of numbers.
    """
    match expr:
        case Var() | IntImm() | FloatImm():
            return expr
        case BinOp() if is_integer(dtype_of(expr)) and not may_wrap(expr):
            return recombine(normal(expr, ranges)).to_expr()
        case Compare(op, lhs, rhs) if is_integer(dtype_of(lhs)):
            return _compare(op, lhs, rhs, ranges)
        case Logic(op, lhs, rhs):
            return _logic(op == "and", simplify(lhs, ranges), simplify(rhs, ranges), expr)
        case Not(value):
            return _negate(simplify(value, ranges))
        case Select(cond, then, otherwise) | Conditional(cond, then, otherwise):
            condition = simplify(cond, ranges)
            if isinstance(condition, IntImm):
                return simplify(then if condition.value else otherwise, ranges)
            return type(expr)(condition, simplify(then, ranges), simplify(otherwise, ranges))
        case Cast(dtype, value):
            inner = simplify(value, ranges)
            if isinstance(inner, IntImm) and is_integer(dtype) and is_integer(inner.dtype):
                return IntImm(wrapped(inner.value, dtype), dtype)
            return inner if dtype_of(inner) == dtype else Cast(dtype, inner)
        case _:
            return map_expr(expr, lambda e: simplify(e, ranges))


def prove(condition: Expr, ranges: Ranges) -> bool:
    """Return whether `condition` surely holds; False means that it could not be proved."""
    return simplify(condition, ranges) == TRUE


def equal(lhs: Expr, rhs: Expr, ranges: Ranges = _NOTHING) -> bool:
    """Return whether two integer expressions surely have the same value."""
    difference = recombine(normal(lhs, ranges) - normal(rhs, ranges))
    return not difference.terms and difference.const == 0


def canonical(expr: Expr, ranges: Ranges = _NOTHING) -> Affine:
    """Return the one linear form of an integer expression and of those that divide otherwise.

    A split of `x` is written `x % (low * extent) // low`, never `x // low % extent`. Neighbouring
    splits are joined: `x // 32 * 8 + x // 4 % 8` is `x // 4`. A split of a sum omits the terms
    below `low`: `(i * 4 + j) % 12 // 4`, with `j` below 4, is `i % 3`.
    """
    form = normal(expr, ranges)
    if not any(isinstance(atom, BinOp) and atom.op == "//" for atom, _ in form.terms):
        return recombine(form)
    total = Affine((), form.const, form.dtype)
    for atom, scale in form.terms:
        match atom:
            case BinOp("//", BinOp("%", value, IntImm(period)), IntImm(low)) if (
                low > 0 and period % low == 0
            ):
                quotient = _divide(affine(value), low, ranges)
                total += _modulo(quotient, period // low, ranges).scaled(scale)
            case _:
                total += Affine(((atom, scale),), 0, form.dtype)
    return recombine(total)


def normal(expr: Expr, ranges: Ranges = _NOTHING) -> Affine:
    """Return the linear normal form of an integer expression with simplified atoms."""
    if isinstance(expr, Var):
        return Affine(((expr, 1),), 0, dtype_of(expr))
    terms: dict[Expr, int] = {}
    const = _collect(expr, 1, ranges, terms)
    return Affine(tuple((t, c) for t, c in terms.items() if c), const, dtype_of(expr))


def _collect(expr: Expr, factor: int, ranges: Ranges, terms: dict[Expr, int]) -> int:
    """Add the terms of `factor * expr` to others; return its constant part."""
    if isinstance(expr, Var):
        terms[expr] = terms.get(expr, 0) + factor
        return 0
    if isinstance(expr, IntImm):
        return factor * expr.value
    if isinstance(expr, BinOp):
        op, lhs, rhs = expr.op, expr.lhs, expr.rhs
        if op in ("+", "-"):
            sign = factor if op == "+" else -factor
            return _collect(lhs, factor, ranges, terms) + _collect(rhs, sign, ranges, terms)
        if op == "*" and isinstance(lhs, IntImm):
            lhs, rhs = rhs, lhs
        if op == "*" and isinstance(rhs, IntImm):
            return _collect(lhs, factor * rhs.value, ranges, terms) if rhs.value else 0
    form = _atomic(expr, ranges)
    for term, coefficient in form.terms:
        terms[term] = terms.get(term, 0) + factor * coefficient
    return factor * form.const


def _atomic(expr: Expr, ranges: Ranges) -> Affine:
    """Return the normal form of what is no sum and no multiple of one thing."""
    if isinstance(ranges, FixedRanges):
        form = ranges.forms.get(expr)
        if form is None:
            form = ranges.forms[expr] = _form_of_atom(expr, ranges)
        return form
    return _form_of_atom(expr, ranges)


def _form_of_atom(expr: Expr, ranges: Ranges) -> Affine:
    match expr:
        case BinOp("*", lhs, rhs):
            a, b = normal(lhs, ranges), normal(rhs, ranges)
            if a.terms and b.terms:
                if (0, 0) in (affine_bounds(a, ranges), affine_bounds(b, ranges)):
                    return Affine((), 0, a.dtype)
                return affine(BinOp("*", a.to_expr(), b.to_expr()))
            return a.scaled(b.const) if not b.terms else b.scaled(a.const)
        case BinOp("//" | "%" as op, lhs, rhs):
            a, b = recombine(normal(lhs, ranges)), normal(rhs, ranges)
            if not a.terms and not b.terms:
                # By zero, quotient and remainder are zero: as in the code that is generated.
                whole, rest = divmod(a.const, b.const) if b.const else (0, 0)
                return Affine((), wrapped(whole if op == "//" else rest, a.dtype), a.dtype)
            if b.terms or b.const <= 0:
                return affine(BinOp(op, a.to_expr(), b.to_expr()))
            return _divide(a, b.const, ranges) if op == "//" else _modulo(a, b.const, ranges)
        case BinOp("min" | "max" as op, lhs, rhs):
            return _extremum(op == "min", normal(lhs, ranges), normal(rhs, ranges), ranges)
        case BinOp(op, lhs, rhs):
            return affine(BinOp(op, simplify(lhs, ranges), simplify(rhs, ranges)))
        case _:
            return affine(simplify(expr, ranges))


def _divide(a: Affine, divisor: int, ranges: Ranges) -> Affine:
    """Divide by a positive constant, rounding down: (c*q + r) // c == q + r // c."""
    if divisor == 1:
        return a
    quotient = from_terms(
        ((t, c // divisor) for t, c in a.terms if c % divisor == 0), a.const // divisor, a.dtype
    )
    rest = Affine(tuple((t, c) for t, c in a.terms if c % divisor), a.const % divisor, a.dtype)
    if not rest.terms:
        return quotient
    interval = affine_bounds(rest, ranges)
    if interval is not None and interval[0] // divisor == interval[1] // divisor:
        return quotient + Affine((), interval[0] // divisor, a.dtype)
    common = math.gcd(divisor, *(c for _, c in rest.terms))
    if common > 1:
        shrunk = Affine(
            tuple((t, c // common) for t, c in rest.terms), rest.const // common, a.dtype
        )
        return quotient + _divide(shrunk, divisor // common, ranges)
    if (parts := _parts(rest, divisor, ranges)) is not None:
        size, coarse, _ = parts
        return quotient + _divide(coarse, divisor // size, ranges)
    match rest.terms, rest.const:
        case (((BinOp("//", inner, IntImm(first)), 1),), 0) if first > 0:
            return quotient + _divide(affine(inner), first * divisor, ranges)
        case _:
            pass
    return quotient + affine(BinOp("//", rest.to_expr(), IntImm(divisor, a.dtype)))


def _modulo(a: Affine, divisor: int, ranges: Ranges) -> Affine:
    """Take the remainder by a positive constant: (c*q + r) % c == r % c."""
    rest = Affine(tuple((t, c) for t, c in a.terms if c % divisor), a.const % divisor, a.dtype)
    if not rest.terms:
        return rest
    interval = affine_bounds(rest, ranges)
    if interval is not None and interval[0] // divisor == interval[1] // divisor:
        return rest + Affine((), -divisor * (interval[0] // divisor), a.dtype)
    common = math.gcd(divisor, *(c for _, c in rest.terms))
    if common > 1:
        shrunk = Affine(
            tuple((t, c // common) for t, c in rest.terms), rest.const // common, a.dtype
        )
        offset = Affine((), rest.const % common, a.dtype)
        return _modulo(shrunk, divisor // common, ranges).scaled(common) + offset
    if (parts := _parts(rest, divisor, ranges)) is not None:
        size, coarse, fine = parts
        return _modulo(coarse, divisor // size, ranges).scaled(size) + fine
    match rest.terms, rest.const:
        case (((BinOp("%", inner, IntImm(first)), 1),), 0) if first > 0 and first % divisor == 0:
            return _modulo(affine(inner), divisor, ranges)
        case (((BinOp("//", inner, IntImm(first)), 1),), 0) if first > 0:
            # The remainder is taken first: x // 4 % 8 is x % 32 // 4.
            return _divide(_modulo(affine(inner), first * divisor, ranges), first, ranges)
        case _:
            pass
    return affine(BinOp("%", rest.to_expr(), IntImm(divisor, a.dtype)))


def _parts(form: Affine, divisor: int, ranges: Ranges) -> tuple[int, Affine, Affine] | None:
    """Write a form as `size * coarse + fine`, with `0 <= fine < size`, for a part of a divisor.

    With `e` below 8, `8*i + e` divided by 56 is `i // 7`, and the remainder `i % 7 * 8 + e`.
    """
    sizes = {math.gcd(divisor, c) for _, c in form.terms}
    for size in sorted(sizes - {1}, reverse=True):
        whole = tuple((t, c // size) for t, c in form.terms if c % size == 0)
        rest = tuple((t, c) for t, c in form.terms if c % size)
        fine = Affine(rest, form.const % size, form.dtype)
        interval = affine_bounds(fine, ranges)
        if interval is not None and interval[0] >= 0 and interval[1] < size:
            return size, Affine(whole, form.const // size, form.dtype), fine
    return None


def _extremum(is_min: bool, a: Affine, b: Affine, ranges: Ranges) -> Affine:
    interval = affine_bounds(a - b, ranges)
    if interval is not None:
        if interval[1] <= 0:
            return a if is_min else b
        if interval[0] >= 0:
            return b if is_min else a
    return affine(BinOp("min" if is_min else "max", a.to_expr(), b.to_expr()))


def recombine(form: Affine) -> Affine:
    """Join neighbouring splits of one value.

    With `k * (x // a % n)`, the finer one, `k*n * (x // (a*n))` makes `k * (x // a)`, and
    `k*n * (x // (a*n) % m)` makes `k * (x // a % (n*m))`.
    """
    for atom, scale in form.terms:
        if not (isinstance(atom, BinOp) and atom.op in ("//", "%")):
            continue
        fine = peel(atom)
        if fine.extent is None:
            continue
        for other, other_scale in form.terms:
            if other_scale != scale * fine.extent:
                continue
            joined = _joined(fine, peel(other), form.dtype)
            if joined is not None:
                rest = tuple((t, c) for t, c in form.terms if t not in (atom, other))
                whole = Affine(rest, form.const, form.dtype) + affine(joined).scaled(scale)
                return recombine(whole)
    return form


def _joined(fine: Peeled, coarse: Peeled, dtype: DType) -> Expr | None:
    """Return what two splits make, each scaled by where it begins, if they are neighbours."""
    source, low, extent = fine
    if extent is None or coarse.low != low * extent or coarse.source != source:
        return None
    expr = source
    if coarse.extent is not None:
        period = coarse.low * coarse.extent
        if wrapped(period, dtype) != period:
            return None
        expr = BinOp("%", expr, IntImm(period, dtype))
    return BinOp("//", expr, IntImm(low, dtype)) if low > 1 else expr


def _compare(op: CompareOp, lhs: Expr, rhs: Expr, ranges: Ranges) -> Expr:
    if may_wrap(lhs) or may_wrap(rhs):
        return Compare(op, simplify(lhs, ranges), simplify(rhs, ranges))
    a, b = recombine(normal(lhs, ranges)), recombine(normal(rhs, ranges))
    interval = affine_bounds(a - b, ranges)
    if interval is not None:
        is_true = _decide(op, *interval)
        if is_true is not None:
            return TRUE if is_true else FALSE
    return Compare(op, a.to_expr(), b.to_expr())


def _decide(op: CompareOp, low: int, high: int) -> bool | None:
    """Decide `d op 0` for every d from `low` to `high`, if it is the same for all."""
    if op in ("!=", ">=", ">"):
        opposite = _decide(_NEGATED[op], low, high)
        return None if opposite is None else not opposite
    if op == "==":
        return True if low == high == 0 else False if low > 0 or high < 0 else None
    limit = 0 if op == "<=" else -1
    return True if high <= limit else False if low > limit else None


def _logic(is_and: bool, lhs: Expr, rhs: Expr, expr: Logic) -> Expr:
    absorbing, neutral = (FALSE, TRUE) if is_and else (TRUE, FALSE)
    if absorbing in (lhs, rhs):
        return absorbing
    if lhs in (neutral, rhs):
        return rhs
    return lhs if rhs == neutral else Logic(expr.op, lhs, rhs)


def _negate(value: Expr) -> Expr:
    match value:
        case IntImm(truth):
            return FALSE if truth else TRUE
        case Not(inner):
            return inner
        case Compare(op, lhs, rhs) if is_integer(dtype_of(lhs)):
            return Compare(_NEGATED[op], lhs, rhs)
        case _:
            return Not(value)
