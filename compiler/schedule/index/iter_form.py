"""How the values of block iterators are written: as sums of splits of loops.

A value such as `((i_0 * 3 + i_1) * 5 + i_2) % 16 + vio * 16` becomes a sum of splits
`source % (low * extent) // low * scale`, the coarsest first, and of what no loop moves. The source
of a split is a loop, or a sum of loops that has no gaps and no overlaps. If a value is nothing of
the kind, it stays as it stands. (TVM's iterator maps write the same form.)

The values are read as they are written, and not from their canonical form: that has already taken
`(i_0 * 3 + i_1) // 3` to `i_0`, and forgotten which loops were fused. A proof about values starts
from the canonical form instead (`compiler.ir.arith.bijectivity`).

Example, with `f` below 9, `i` below 32 and the predicate `f * 32 + i < 280`: the source of
`(f * 32 + i) // 16` is `f * 32 + i`, below 280, so that the split has 18 values.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.iter_map import Extents, Guards, IterSplit, Terms, variables
from compiler.ir.arith.simplify import normal
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var


@frozen
class _IterSum:
    """Splits of loops, and what no loop moves."""

    splits: tuple[IterSplit, ...]
    base: Affine

    def to_expr(self) -> Expr:
        total: Expr | None = None
        for split in self.splits:
            part = split.to_expr()
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

    def scaled(self, factor: int) -> _IterSum:
        if factor == 0:
            return _IterSum((), self.base.scaled(0))
        splits = tuple(d.of_scale(d.scale * factor) for d in self.splits)
        return _IterSum(splits, self.base.scaled(factor))


class _NoFormError(Exception):
    """A value is no sum of splits."""


def in_iter_form(
    values: Sequence[Expr], extents: Extents, bounds: Guards, *, keep_units: bool
) -> tuple[Expr, ...] | None:
    """Return the values of a block's iterators as sums of splits, None if one is nothing such.

    Args:
        extents: The loops around the block, and how often they run.
        bounds: What the block's predicate says of sums of loops.
        keep_units: Whether loops of a single iteration appear in the values.
    """
    reader = _IterFormReader(extents, bounds, keep_units=keep_units)
    try:
        return tuple(reader.whole(value).to_expr() for value in values)
    except _NoFormError:
        return None


def splits_in_order(value: Expr, extents: Extents, bounds: Guards) -> tuple[IterSplit, ...] | None:
    """Return the splits of loops that a value is the sum of, the coarsest first, None if of none.

    Args:
        extents: The loops around the value, and how often they run.
        bounds: Upper bounds on sums of loops.
    """
    try:
        return _IterFormReader(extents, bounds, keep_units=False).whole(value).splits
    except _NoFormError:
        return None


class _IterFormReader:
    def __init__(self, extents: Extents, bounds: Guards, *, keep_units: bool) -> None:
        self._extents = extents
        self._bounds = bounds
        self._keep_units = keep_units

    def whole(self, expr: Expr) -> _IterSum:
        """Read a value whose splits leave no gaps."""
        if isinstance(expr, Var) and self._extents.get(expr, 1) > 1:
            extent = self._extents[expr]
            return _IterSum((IterSplit(expr, extent, 1, extent),), Affine((), 0, dtype_of(expr)))
        total = self._read(expr)
        if len(total.splits) > 1:
            return _IterSum(_joined(self._ordered(total.splits)), total.base)
        if total.splits and total.splits[0].scale < 0:
            raise _NoFormError
        return total

    def _read(self, expr: Expr) -> _IterSum:
        if isinstance(expr, Var) and expr in self._extents:
            extent = self._extents[expr]
            if extent == 1 and not self._keep_units:
                return _IterSum((), Affine((), 0, dtype_of(expr)))
            return _IterSum((IterSplit(expr, extent, 1, extent),), Affine((), 0, dtype_of(expr)))
        match expr:
            case IntImm() | Var():
                return _IterSum((), affine(expr))
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
                return _IterSum((), normal(expr))
            case _:
                raise _NoFormError

    def _divide(self, dividend: _IterSum, divisor: int) -> _IterSum:
        split, base = self._single(dividend)
        if divisor == 1 or split is None:
            return _IterSum(dividend.splits, base) if split else _IterSum((), _floor(base, divisor))
        if split.scale % divisor == 0 and _divides(divisor, base):
            return _IterSum((split.of_scale(split.scale // divisor),), _floor(base, divisor))
        if divisor % split.scale or not _divides(split.scale, base):
            raise _NoFormError
        base, divisor = _floor(base, split.scale), divisor // split.scale
        if not _divides(divisor, base):
            raise _NoFormError
        extent = -(-split.extent // divisor)
        if extent == 1 and not self._keep_units:
            return _IterSum((), _floor(base, divisor))
        new = IterSplit(split.source, split.limit, split.low * divisor, extent)
        return _IterSum((new,), _floor(base, divisor))

    def _modulo(self, dividend: _IterSum, divisor: int) -> _IterSum:
        split, base = self._single(dividend)
        if split is None:
            return _IterSum((), normal(BinOp("%", base.to_expr(), IntImm(divisor, base.dtype))))
        if split.scale % divisor == 0 and _divides(divisor, base):
            return _IterSum((), base.scaled(0))
        if divisor % split.scale or not _divides(divisor, base):
            raise _NoFormError
        period = divisor // split.scale
        if split.extent <= period:
            return _IterSum((split,), base.scaled(0))
        if split.extent % period and split.low * split.extent < split.limit:
            raise _NoFormError
        part = IterSplit(split.source, split.limit, split.low, period, split.scale)
        return _IterSum((part,), base.scaled(0))

    def _single(self, total: _IterSum) -> tuple[IterSplit | None, Affine]:
        """Return the one split that a sum is, or the sum of loops as the source of one."""
        if not total.splits:
            return None, total.base
        if len(total.splits) == 1:
            if total.splits[0].scale < 1:
                raise _NoFormError
            return total.splits[0], total.base
        splits = self._ordered(total.splits)
        scale = splits[-1].scale
        plain = tuple(d.of_scale(d.scale // scale) for d in splits)
        source = _IterSum(plain, Affine((), 0, total.base.dtype)).to_expr()
        limit = plain[0].scale * plain[0].extent
        bound = self._bounds.get(frozenset(affine(source).terms))
        limit = limit if bound is None else min(limit, bound)
        return IterSplit(source, limit, 1, limit, scale), total.base

    def _ordered(self, splits: tuple[IterSplit, ...]) -> tuple[IterSplit, ...]:
        """Return splits, the coarsest first, if each begins where the finer ones end."""
        rest = list(self._grouped(splits))
        next_scale = min(split.scale for split in rest)
        if next_scale < 1:
            raise _NoFormError
        finest_first: list[IterSplit] = []
        while rest:
            # Of loops of a single iteration the inner one is the finer.
            at = next((n for n in reversed(range(len(rest))) if rest[n].scale == next_scale), None)
            if at is None:
                raise _NoFormError
            split = rest.pop(at)
            finest_first.append(split)
            next_scale *= split.extent
        return tuple(reversed(finest_first))

    def _grouped(self, splits: tuple[IterSplit, ...]) -> tuple[IterSplit, ...]:
        """Join splits whose sum has a bound of its own: it is a source with fewer values."""
        for terms, bound in sorted(self._bounds.items(), key=lambda item: len(item[0])):
            if not 1 < len(terms) < len(splits):
                continue
            inside, scale = _scaled_by(splits, terms)
            if scale < 1:
                continue
            plain = tuple(d.of_scale(d.scale // scale) for d in inside)
            ordered = tuple(sorted(plain, key=lambda d: -d.scale))
            limit = min(bound, 1 + sum(d.scale * (d.extent - 1) for d in plain))
            source = _IterSum(ordered, Affine((), 0, dtype_of(plain[0].source))).to_expr()
            joined = IterSplit(source, limit, 1, limit, scale)
            splits = (*(d for d in splits if d not in inside), joined)
        return splits


def _joined(splits: tuple[IterSplit, ...]) -> tuple[IterSplit, ...]:
    """Join neighbouring splits of one source: `x // 5 * 5 + x % 5` is `x`."""
    merged = [splits[0]]
    for fine in splits[1:]:
        coarse = merged[-1]
        step = (fine.source, fine.low * fine.extent, fine.scale * fine.extent)
        if (coarse.source, coarse.low, coarse.scale) == step:
            extent = coarse.extent * fine.extent
            merged[-1] = IterSplit(fine.source, fine.limit, fine.low, extent, fine.scale)
        else:
            merged.append(fine)
    return tuple(merged)


def _scaled_by(splits: tuple[IterSplit, ...], terms: Terms) -> tuple[tuple[IterSplit, ...], int]:
    """Return the splits that are some terms times a scale, and the scale; zero if they are not."""
    factors = dict(terms)
    inside = tuple(d for d in splits if d.of_scale(1).to_expr() in factors)
    scales = {d.scale / factors[d.of_scale(1).to_expr()] for d in inside}
    if len(inside) < len(terms) or len(scales) != 1:
        return (), 0
    scale = scales.pop()
    return inside, int(scale) if scale.is_integer() else 0


def _add(a: _IterSum, b: _IterSum) -> _IterSum:
    splits = list(a.splits)
    for new in b.splits:
        for number, old in enumerate(splits):
            if old.of_scale(new.scale) == new:
                splits[number] = old.of_scale(old.scale + new.scale)
                break
        else:
            splits.append(new)
    return _IterSum(tuple(d for d in splits if d.scale), a.base + b.base)


def _divides(divisor: int, form: Affine) -> bool:
    return form.const % divisor == 0 and all(scale % divisor == 0 for _, scale in form.terms)


def _floor(form: Affine, divisor: int) -> Affine:
    return normal(BinOp("//", form.to_expr(), IntImm(divisor, form.dtype)))
