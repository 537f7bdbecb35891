"""The form of an index that all index analysis shares: a sum of iterator splits.

Splitting and fusing loops makes indices such as `i_0 * 4 + i_1`, `f // 16`, `f % 16` and
`(f_0 * 32 + f_1) // 16`. Each is a sum of splits `scale * (source // low % extent)`, as in TVM's
iterator maps. The source is an iterator, or a sum of splits that takes the values 0 to `limit` - 1.

Example, with `f_0` below 9 and `f_1` below 32, the index `(f_0 * 32 + f_1) // 16 % 6 * 8`:

    source    f_0 * 32 + f_1, below limit = 288
    low       16
    extent    6
    scale     8

`canonical` of `compiler.ir.arith.simplify` writes a split as `source % (low * extent) // low` and
joins neighbouring splits. The modules that read splits answer different questions:

    bijectivity (beside this)      which iterators some indices determine, which points they reach
    analysis.dependence            when two accesses to one element agree on a thread or a loop
    schedule.index.iter_form       how to write the values of a block's iterators
    schedule.index.index_map_inverse   which old element is at a new index, and what is padding
    schedule.index.solve           which values of iterators put an index into a span
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.ir.core.visit import walk

Terms: TypeAlias = frozenset[tuple[Expr, int]]
Extents: TypeAlias = Mapping[Var, int]
"""The extents of variables that start at zero: `UNKNOWN` or more if they have no bound."""

Guards: TypeAlias = Mapping[Terms, int]
"""Known upper bounds: a sum of terms (without its constant) is less than the number."""

Source: TypeAlias = Var | Terms
"""The source of a split, apart from the order in which its terms are written."""

NO_GUARDS: Guards = {}


@frozen
class IterSplit:
    """`scale * (source // low % extent)`, where the source runs over 0, ..., `limit` - 1."""

    source: Expr
    limit: int
    low: int
    extent: int
    scale: int = 1

    @property
    def key(self) -> Source:
        """The source, apart from the order of its terms."""
        return self.source if isinstance(self.source, Var) else terms_of(affine(self.source))

    def of_scale(self, scale: int) -> IterSplit:
        """Return the split with another scale."""
        return IterSplit(self.source, self.limit, self.low, self.extent, scale)

    def to_expr(self) -> Expr:
        """Return the expression, without operations that change nothing."""
        dtype = dtype_of(self.source)
        expr = self.source
        if self.low * self.extent < self.limit:
            expr = BinOp("%", expr, IntImm(self.low * self.extent, dtype))
        if self.low > 1:
            expr = BinOp("//", expr, IntImm(self.low, dtype))
        return expr if self.scale == 1 else BinOp("*", expr, IntImm(self.scale, dtype))


class Peeled(NamedTuple):
    """An expression `source // low % extent`; the extent is None if there is no remainder."""

    source: Expr
    low: int
    extent: int | None


def peel(expr: Expr) -> Peeled:
    """Take the divisions by numbers off an expression, as far as they combine into one split.

    `x // 4 % 6 // 2` is `x // 8 % 3`. But `x % 6 // 4` is a part of `x % 6`: 4 does not divide 6.
    """
    low, extent = 1, None
    while isinstance(expr, BinOp) and isinstance(expr.rhs, IntImm) and expr.rhs.value > 0:
        number = expr.rhs.value
        if expr.op == "//":
            low *= number
        elif expr.op == "%" and number % low == 0 and _combine(extent, number // low):
            # x % a // low is x // low % (a // low) if low divides a.
            extent = min(number // low, extent or number)
        else:
            break
        expr = expr.lhs
    return Peeled(expr, low, extent)


def _combine(extent: int | None, period: int) -> bool:
    """Check that `x % period % extent` is the remainder by the lesser of both numbers."""
    return extent is None or extent >= period or period % extent == 0


def split_of(
    atom: Expr, extents: Extents, guards: Guards = NO_GUARDS, scale: int = 1
) -> IterSplit | None:
    """Read a term of a linear form as a split; return None if it is none.

    Args:
        extents: The extents of the iterators.
        guards: Bounds on sums of iterators, which then have fewer values.
    """
    if isinstance(atom, Var):
        limit = extents.get(atom)
        return None if limit is None else IterSplit(atom, limit, 1, limit, scale)
    source, low, extent = peel(atom)
    limit = None if source is atom else _limit(source, extents, guards)
    if limit is None:
        return None
    most = -(-limit // low)
    return IterSplit(source, limit, low, most if extent is None else min(extent, most), scale)


def splits_of(form: Affine, extents: Extents, guards: Guards = NO_GUARDS) -> list[IterSplit] | None:
    """Return the splits of a form that take more than one value; None if a term is no split."""
    splits: list[IterSplit] = []
    for atom, scale in form.terms:
        split = split_of(atom, extents, guards, scale)
        if split is None:
            return None
        if split.extent > 1:
            splits.append(split)
    return splits


def _limit(source: Expr, extents: Extents, guards: Guards) -> int | None:
    """Return how many values a source has from zero on; None if it is no sum of splits."""
    if isinstance(source, Var):
        return extents.get(source)
    form = affine(source)
    if form.const or not form.terms:
        return None
    splits = splits_of(form, extents, guards)
    if splits is None or any(split.scale < 0 for split in splits):
        return None
    limit = span_of_digits((split.scale, split.extent) for split in splits)
    return min(limit, guards.get(terms_of(form), limit))


def count_of(atom: Expr, extents: Extents) -> int | None:
    """Return how many values an atom takes, starting at zero, if it is a split."""
    split = split_of(atom, extents)
    return None if split is None else split.extent


# Sums of digits: pairs of a scale and of how many values the digit takes


def span_of_digits(digits: Iterable[tuple[int, int]]) -> int:
    """Return the distance from the least to the greatest sum of some digits, plus one."""
    return 1 + sum(abs(scale) * (extent - 1) for scale, extent in digits)


def may_overlap(digits: Iterable[tuple[int, int]]) -> bool:
    """Return whether two choices of some digits may have one sum, as far as their scales show.

    They have not if each scale is greater than the reach of all finer digits: `i * 8 + j` with `j`
    below 8, but not with `j` below 9.
    """
    span = 1
    for scale, extent in sorted(digits, key=lambda digit: abs(digit[0])):
        if abs(scale) < span:
            return True
        span += abs(scale) * (extent - 1)
    return False


def dense_width(digits: Sequence[tuple[int, int]]) -> int | None:
    """Return how many values a sum of digits takes, if it takes 0, 1, ... and each just once.

    Each digit then begins where the finer ones end: (1, 4), (4, 3), (12, 2). None if it does not.
    """
    width = 1
    for scale, extent in sorted(digits):
        if scale != width:
            return None
        width *= extent
    return width


# Variables and terms of forms


def terms_of(form: Affine) -> Terms:
    """Return the terms of a form, without their order."""
    return frozenset(form.terms)


def variables(expr: Expr) -> set[Var]:
    """Return the variables of an expression."""
    if isinstance(expr, Var):
        return {expr}
    if isinstance(expr, IntImm):
        return set()
    if isinstance(expr, BinOp):
        return variables(expr.lhs) | variables(expr.rhs)
    return {node for node in walk(expr) if isinstance(node, Var)}


def variables_of(form: Affine) -> set[Var]:
    """Return the variables of a form."""
    return {var for atom, _ in form.terms for var in variables(atom)}
