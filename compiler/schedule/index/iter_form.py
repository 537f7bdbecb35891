"""The form in which the values of block iterators are written: sums of digits of loops.

A value such as `((i_0 * 3 + i_1) * 5 + i_2) % 16 + vio * 16` becomes a sum of digits
`source % (low * extent) // low * scale`, the coarsest first, and of what no loop moves. The source
of a digit is a loop, or a sum of loops that has no gaps and no overlaps. Where a value is nothing
of the kind, it stays as it stands. (TVM's iterator maps write the same form.)
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.iter_map import Extents, Guards, variables
from compiler.ir.arith.simplify import normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var


@frozen
class _Digit:
    """`scale * (source // low % extent)`, where the source has `limit` values."""

    source: Expr
    limit: int
    low: int
    extent: int
    scale: int = 1

    def of_scale(self, scale: int) -> _Digit:
        return _Digit(self.source, self.limit, self.low, self.extent, scale)

    def to_expr(self) -> Expr:
        dtype = dtype_of(self.source)
        expr = self.source
        if self.low * self.extent < self.limit:
            expr = BinOp("%", expr, IntImm(self.low * self.extent, dtype))
        if self.low > 1:
            expr = BinOp("//", expr, IntImm(self.low, dtype))
        return expr if self.scale == 1 else BinOp("*", expr, IntImm(self.scale, dtype))


@frozen
class _Sum:
    """Digits of loops, and what no loop moves."""

    digits: tuple[_Digit, ...]
    base: Affine

    def to_expr(self) -> Expr:
        total: Expr | None = None
        for digit in self.digits:
            part = digit.to_expr()
            total = part if total is None else BinOp("+", total, part)
        if total is None:
            return self.base.to_expr()
        for atom, scale in self.base.terms:
            term = Affine(((atom, abs(scale)),), 0, self.base.dtype).to_expr()
            total = BinOp("+" if scale > 0 else "-", total, term)
        if self.base.const:
            op = "+" if self.base.const > 0 else "-"
            total = BinOp(op, total, IntImm(abs(self.base.const), self.base.dtype))  # type: ignore[arg-type]
        return total

    def scaled(self, factor: int) -> _Sum:
        if factor == 0:
            return _Sum((), self.base.scaled(0))
        digits = tuple(d.of_scale(d.scale * factor) for d in self.digits)
        return _Sum(digits, self.base.scaled(factor))


class _NoFormError(Exception):
    """A value is no sum of digits."""


def in_iter_form(
    values: Sequence[Expr], extents: Extents, bounds: Guards, *, keep_units: bool
) -> tuple[Expr, ...] | None:
    """Return the values of a block's iterators as sums of digits, None if one is nothing such.

    Args:
        extents: The loops around the block, and how often they run.
        bounds: What the block's predicate says of sums of loops.
        keep_units: Whether loops of a single iteration appear in the values.
    """
    reader = _Reader(extents, bounds, keep_units=keep_units)
    try:
        return tuple(reader.whole(value).to_expr() for value in values)
    except _NoFormError:
        return None


class _Reader:
    def __init__(self, extents: Extents, bounds: Guards, *, keep_units: bool) -> None:
        self._extents = extents
        self._bounds = bounds
        self._keep_units = keep_units

    def whole(self, expr: Expr) -> _Sum:
        """Read a value whose digits leave no gaps."""
        if isinstance(expr, Var) and self._extents.get(expr, 1) > 1:
            extent = self._extents[expr]
            return _Sum((_Digit(expr, extent, 1, extent),), Affine((), 0, dtype_of(expr)))
        total = self._read(expr)
        if len(total.digits) > 1:
            return _Sum(_joined(self._ordered(total.digits)), total.base)
        if total.digits and total.digits[0].scale < 0:
            raise _NoFormError
        return total

    def _read(self, expr: Expr) -> _Sum:
        if isinstance(expr, Var) and expr in self._extents:
            extent = self._extents[expr]
            if extent == 1 and not self._keep_units:
                return _Sum((), Affine((), 0, dtype_of(expr)))
            return _Sum((_Digit(expr, extent, 1, extent),), Affine((), 0, dtype_of(expr)))
        match expr:
            case IntImm() | Var():
                return _Sum((), affine(expr))
            case BinOp("+", lhs, rhs):
                return _add(self._read(lhs), self._read(rhs))
            case BinOp("-", lhs, rhs):
                return _add(self._read(lhs), self._read(rhs).scaled(-1))
            case BinOp("*", lhs, IntImm(factor)) | BinOp("*", IntImm(factor), lhs):
                return self._read(lhs).scaled(factor)
            case BinOp("//", lhs, IntImm(divisor)) if divisor > 0:
                return self._divide(self._read(lhs), divisor)
            case BinOp("%", lhs, IntImm(divisor)) if divisor > 0:
                return self._modulo(self._read(lhs), divisor)
            case _ if not any(var in self._extents for var in variables(expr)):
                return _Sum((), normal(expr))
            case _:
                raise _NoFormError

    def _divide(self, dividend: _Sum, divisor: int) -> _Sum:
        digit, base = self._single(dividend)
        if divisor == 1 or digit is None:
            return _Sum(dividend.digits, base) if digit else _Sum((), _floor(base, divisor))
        if digit.scale % divisor == 0 and _divides(divisor, base):
            return _Sum((digit.of_scale(digit.scale // divisor),), _floor(base, divisor))
        if divisor % digit.scale or not _divides(digit.scale, base):
            raise _NoFormError
        base, divisor = _floor(base, digit.scale), divisor // digit.scale
        if not _divides(divisor, base):
            raise _NoFormError
        extent = -(-digit.extent // divisor)
        if extent == 1 and not self._keep_units:
            return _Sum((), _floor(base, divisor))
        new = _Digit(digit.source, digit.limit, digit.low * divisor, extent)
        return _Sum((new,), _floor(base, divisor))

    def _modulo(self, dividend: _Sum, divisor: int) -> _Sum:
        digit, base = self._single(dividend)
        if digit is None:
            return _Sum((), normal(BinOp("%", base.to_expr(), IntImm(divisor, base.dtype))))
        if digit.scale % divisor == 0 and _divides(divisor, base):
            return _Sum((), base.scaled(0))
        if divisor % digit.scale or not _divides(divisor, base):
            raise _NoFormError
        period = divisor // digit.scale
        if digit.extent <= period:
            return _Sum((digit,), base.scaled(0))
        if digit.extent % period and digit.low * digit.extent < digit.limit:
            raise _NoFormError
        part = _Digit(digit.source, digit.limit, digit.low, period, digit.scale)
        return _Sum((part,), base.scaled(0))

    def _single(self, total: _Sum) -> tuple[_Digit | None, Affine]:
        """Return the one digit that a sum is, or the sum of loops as the source of one."""
        if not total.digits:
            return None, total.base
        if len(total.digits) == 1:
            if total.digits[0].scale < 1:
                raise _NoFormError
            return total.digits[0], total.base
        digits = self._ordered(total.digits)
        scale = digits[-1].scale
        plain = tuple(d.of_scale(d.scale // scale) for d in digits)
        source = _Sum(plain, Affine((), 0, total.base.dtype)).to_expr()
        limit = plain[0].scale * plain[0].extent
        bound = self._bounds.get(frozenset(affine(source).terms))
        limit = limit if bound is None else min(limit, bound)
        return _Digit(source, limit, 1, limit, scale), total.base

    def _ordered(self, digits: tuple[_Digit, ...]) -> tuple[_Digit, ...]:
        """Return digits, the coarsest first, if each begins where the finer ones end."""
        rest = list(self._grouped(digits))
        next_scale = min(digit.scale for digit in rest)
        if next_scale < 1:
            raise _NoFormError
        finest_first: list[_Digit] = []
        while rest:
            # Of loops of a single iteration the inner one is the finer.
            at = next((n for n in reversed(range(len(rest))) if rest[n].scale == next_scale), None)
            if at is None:
                raise _NoFormError
            digit = rest.pop(at)
            finest_first.append(digit)
            next_scale *= digit.extent
        return tuple(reversed(finest_first))

    def _grouped(self, digits: tuple[_Digit, ...]) -> tuple[_Digit, ...]:
        """Join digits whose sum has a bound of its own: it is a source with fewer values."""
        for terms, bound in sorted(self._bounds.items(), key=lambda item: len(item[0])):
            if not 1 < len(terms) < len(digits):
                continue
            inside, scale = _scaled_by(digits, terms)
            if scale < 1:
                continue
            plain = tuple(d.of_scale(d.scale // scale) for d in inside)
            ordered = tuple(sorted(plain, key=lambda d: -d.scale))
            limit = min(bound, 1 + sum(d.scale * (d.extent - 1) for d in plain))
            source = _Sum(ordered, Affine((), 0, dtype_of(plain[0].source))).to_expr()
            joined = _Digit(source, limit, 1, limit, scale)
            digits = (*(d for d in digits if d not in inside), joined)
        return digits


def _joined(digits: tuple[_Digit, ...]) -> tuple[_Digit, ...]:
    """Join neighbouring digits of one source: `x // 5 * 5 + x % 5` is `x`."""
    merged = [digits[0]]
    for fine in digits[1:]:
        coarse = merged[-1]
        step = (fine.source, fine.low * fine.extent, fine.scale * fine.extent)
        if (coarse.source, coarse.low, coarse.scale) == step:
            extent = coarse.extent * fine.extent
            merged[-1] = _Digit(fine.source, fine.limit, fine.low, extent, fine.scale)
        else:
            merged.append(fine)
    return tuple(merged)


def _scaled_by(
    digits: tuple[_Digit, ...], terms: frozenset[tuple[Expr, int]]
) -> tuple[tuple[_Digit, ...], int]:
    """Return the digits that are some terms times a scale, and the scale; zero if they are not."""
    factors = dict(terms)
    inside = tuple(d for d in digits if d.of_scale(1).to_expr() in factors)
    scales = {d.scale / factors[d.of_scale(1).to_expr()] for d in inside}
    if len(inside) < len(terms) or len(scales) != 1:
        return (), 0
    scale = scales.pop()
    return inside, int(scale) if scale.is_integer() else 0


def _add(a: _Sum, b: _Sum) -> _Sum:
    digits = list(a.digits)
    for new in b.digits:
        for number, old in enumerate(digits):
            if old.of_scale(new.scale) == new:
                digits[number] = old.of_scale(old.scale + new.scale)
                break
        else:
            digits.append(new)
    return _Sum(tuple(d for d in digits if d.scale), a.base + b.base)


def _divides(divisor: int, form: Affine) -> bool:
    return form.const % divisor == 0 and all(scale % divisor == 0 for _, scale in form.terms)


def _floor(form: Affine, divisor: int) -> Affine:
    return normal(BinOp("//", form.to_expr(), IntImm(divisor, form.dtype)))
