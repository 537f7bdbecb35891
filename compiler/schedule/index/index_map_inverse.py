"""Invert index maps: which old element is at a new index, and which new indices are padding.

Each new index is read as a sum of digits, `scale * (source // low % extent)`, that follow each
other without a gap. All digits of one source, again without a gap, give its value. A source is an
old index, or a sum of old indices whose digits are then inverted in turn. New indices whose source
is outside of its range are padding. (TVM's iterator maps solve the same problem.)

Example, a vector of 10 elements in rows of 4, `i -> (i // 4, i % 4)`:

    axis0 is `i // 4`: the digit of `i` with low 4
    axis1 is `i % 4`:  the digit of `i` with low 1 and extent 4
    both digits:       i = axis0 * 4 + axis1
    padding:           axis0 == 2 and 2 <= axis1, the indices of the elements 10 and 11
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import FALSE, BinOp, Compare, Expr, IntImm, Logic, LogicOp, Var
from compiler.ir.core.visit import walk
from compiler.schedule.index.index_map import IndexMap, IndexMapError

_Key = tuple[frozenset[tuple[Expr, int]], int]


@dataclass(frozen=True)
class Inverse:
    """The inverse of a map, and the condition on its parameters that holds in the padding."""

    index_map: IndexMap
    padding: Expr

    @property
    def has_padding(self) -> bool:
        """Whether the new layout has an index without an old element."""
        return self.padding != FALSE


def inverse_of(index_map: IndexMap, shape: Sequence[int] | Sequence[Expr]) -> Inverse:
    """Return the inverse of a map on the elements of a shape, which may be symbolic.

    Raises:
        IndexMapError: If two elements may get one index, or the map is no sum of digits.
    """
    sizes = [IntImm(size) if isinstance(size, int) else size for size in shape]
    index_map.map_shape([extent_or_unknown(size) for size in sizes])
    extents = dict(zip(index_map.params, sizes, strict=True))
    try:
        return _Inversion(index_map, extents, index_map.results).run()
    except IndexMapError:
        # Simplified within their ranges, more maps are sums of digits. The form as it was written
        # comes first: its padding is never larger.
        ranges = {param: extent_or_unknown(size) for param, size in extents.items()}
        simplified = tuple(simplify(result, ranges) for result in index_map.results)
        return _Inversion(index_map, extents, simplified).run()


def is_injective(index_map: IndexMap, shape: Sequence[int] | Sequence[Expr]) -> bool:
    """Check that every element of a shape gets a different index; False if that is unproved."""
    try:
        inverse_of(index_map, shape)
    except IndexMapError:
        sizes = [size if isinstance(size, int) else extent_or_unknown(size) for size in shape]
        extents = dict(zip(index_map.params, sizes, strict=True))
        forms = (normal(result, extents) for result in index_map.results)
        return set(index_map.params) <= determined(forms, extents)
    return True


@dataclass(frozen=True, slots=True)
class _Digit:
    """A digit of a source, and the expression of the new indices that has its value.

    `has_modulus` is true for `source // low % extent`, false for the greatest one, `source // low`.
    """

    low: int
    extent: int
    has_modulus: bool
    value: Expr


@dataclass
class _Source:
    """An expression that digits are read of; it takes the values `form.const` to `limit - 1`."""

    form: Affine
    limit: int
    digits: list[_Digit] = field(default_factory=list)

    @property
    def var(self) -> Var | None:
        """The old index, if the source is one plus a constant."""
        match self.form.terms:
            case ((Var() as var, 1),):
                return var
            case _:
                return None


class _Inversion:
    """One attempt to invert a map, from one form of its results."""

    def __init__(
        self, index_map: IndexMap, sizes: Mapping[Var, Expr], results: Sequence[Expr]
    ) -> None:
        self._map = index_map
        self._extents = {param: extent_or_unknown(size) for param, size in sizes.items()}
        self._symbols = {p: size for p, size in sizes.items() if not isinstance(size, IntImm)}
        self._results = results
        self._sources: dict[_Key, _Source] = {}
        self._ranges: dict[Var, int] = {}
        self._padding: dict[_Key, Expr] = {}
        self._dtype = dtype_of(index_map.params[0]) if index_map.params else "int32"

    def run(self) -> Inverse:
        """Return the inverse.

        Raises:
            IndexMapError: If the map has no inverse, or none is found.
        """
        new_axes = self._new_axes()
        for axis, result in zip(new_axes, self._results, strict=True):
            self._take(axis, affine(result), self._ranges[axis])
        old_indices = self._solve()
        inverse = IndexMap(new_axes, tuple(old_indices[param] for param in self._map.params))
        return Inverse(inverse, self._all_padding())

    def _new_axes(self) -> tuple[Var, ...]:
        """Return the variables of the new layout: an old index that is unchanged keeps its name."""
        axes: list[Var] = []
        sizes = self._map.map_shape([self._extents[p] for p in self._map.params])
        for number, (result, size) in enumerate(zip(self._map.results, sizes, strict=True)):
            name = result.name if isinstance(result, Var) else f"axis{number}"
            axis = Var(name, self._dtype)
            axes.append(axis)
            self._ranges[axis] = size
        return tuple(axes)

    # From indices to digits

    def _take(self, value: Expr, form: Affine, size: int) -> None:
        """Add the digits of `form`, which has `size` values and is computed by `value`."""
        if form.const:
            raise self._error("does not start at 0")
        parts = [(scale, *self._digit(atom)) for atom, scale in form.terms]
        if len(parts) > 1:
            parts = [part for part in parts if part[3] > 1]
        parts.sort(key=lambda part: part[0])
        width = 1
        for number, (scale, source, low, extent, has_modulus) in enumerate(parts):
            if scale != width:
                raise self._error("leaves gaps between elements, or lets two of them collide")
            width *= extent
            digit = value
            if number < len(parts) - 1:
                digit = BinOp("%", digit, IntImm(width, self._dtype))
            if scale > 1:
                digit = BinOp("//", digit, IntImm(scale, self._dtype))
            source.digits.append(_Digit(low, extent, has_modulus, digit))
        if width != size:
            raise self._error("leaves gaps between elements, or lets two of them collide")

    def _digit(self, atom: Expr) -> tuple[_Source, int, int, bool]:
        """Read an atom as a digit: its source, low, extent, and whether a modulus cuts it off."""
        base, low, modulus = self._peel(atom)
        source = self._source(affine(base))
        extent = -(-source.limit // low) if modulus is None else modulus
        return source, low, extent, modulus is not None

    def _peel(self, expr: Expr) -> tuple[Expr, int, int | None]:
        """Return `x`, `c` and `m` such that an expression is `x // c % m`, `m` None for no `%`."""
        match expr:
            case BinOp("//" | "%" as op, inner, IntImm(number)) if number > 0:
                base, low, modulus = self._peel(inner)
                if op == "//":
                    if modulus is None:
                        return base, low * number, None
                    if modulus % number == 0:
                        return base, low * number, modulus // number
                elif modulus is None or modulus % number == 0:
                    return base, low, number
                elif number % modulus == 0:
                    return base, low, modulus
                raise self._error("divides by numbers that do not fit together")
            case _:
                return expr, 1, None

    def _source(self, form: Affine) -> _Source:
        key = (frozenset(form.terms), form.const)
        if key not in self._sources:
            self._sources[key] = _Source(form, self._limit(form))
        return self._sources[key]

    def _limit(self, form: Affine) -> int:
        """Return the end of the values of a source, which start at its constant."""
        match form.terms:
            case ((Var() as var, 1),) if var in self._extents:
                return form.const + self._extents[var]
            case ((Var(), _),) | ():
                raise self._error("is no sum of digits of the old indices")
            case _:
                width = 1
                for atom, scale in form.terms:
                    if not (isinstance(atom, Var) or _is_digit(atom)):
                        raise self._error("is no sum of digits of the old indices")
                    width += scale * (self._digit(atom)[2] - 1)
                return form.const + width

    # From digits to indices

    def _solve(self) -> dict[Var, Expr]:
        """Return every old index in terms of the new ones."""
        while True:
            # Greatest first: solving a sum yields the digits of the smaller sums in it.
            sums = [s for s in self._sources.values() if s.var is None and s.digits]
            if not sums:
                break
            source = max(sums, key=_size)
            value = self._value(source)
            source.digits.clear()
            form = Affine(source.form.terms, 0, source.form.dtype)
            self._take(value, form, source.limit - source.form.const)
        old_indices: dict[Var, Expr] = {}
        for source in self._sources.values():
            if source.var is not None and source.digits:
                if source.var in old_indices:
                    raise self._error("takes digits of one index in two ways")
                old_indices[source.var] = self._value(source)
        for param in self._map.params:
            if param not in old_indices:
                if self._extents[param] > 1:
                    raise self._error(f"loses the index {param.name}")
                old_indices[param] = IntImm(0, self._dtype)
        return old_indices

    def _value(self, source: _Source) -> Expr:
        """Return the value of a source from its digits, without its constant."""
        width = 1
        digits = sorted(source.digits, key=lambda d: (d.low, d.extent))
        for digit in digits:
            if digit.extent > 1 and digit.low != width:
                raise self._error("loses elements, or lets two of them collide")
            width *= digit.extent
        if width < source.limit:
            raise self._error("lets two elements collide")
        value = self._sum(digits)
        self._pad(source, digits, value, width)
        shift = IntImm(source.form.const, self._dtype)
        return self._simplified(BinOp("-", value, shift))

    def _sum(self, digits: Sequence[_Digit]) -> Expr:
        """Return the number that some digits make, the greatest first."""
        total: Expr = IntImm(0, self._dtype)
        for digit in sorted(digits, key=lambda d: -d.low):
            scaled = BinOp("*", digit.value, IntImm(digit.low, self._dtype))
            total = BinOp("+", total, scaled)
        return self._simplified(total)

    # Padding

    def _pad(self, source: _Source, digits: list[_Digit], value: Expr, size: int) -> None:
        """Add the condition that the digits make a number outside the source's range."""
        left, right = source.form.const, source.limit
        conditions: list[Expr] = []
        if self._is_symbolic(source):
            conditions.extend(self._symbolic_padding(source, digits))
        elif source.var is None:
            if left > 0:
                conditions.append(Compare("<", value, IntImm(left, self._dtype)))
            if right < size:
                conditions.append(Compare("<=", IntImm(right, self._dtype), value))
        else:
            top = max(digits, key=lambda d: d.low)
            block = top.low * (top.extent if top.has_modulus else 1)
            if left >= block > 1:
                raise self._error("does not start at 0")
            if left > 0:
                conditions.append(self._in_block(digits, block, left, is_left=True))
            if right < size:
                conditions.append(self._in_block(digits, block, right, is_left=False))
        if conditions:
            self._padding[frozenset(source.form.terms), left] = _join("or", conditions)

    def _is_symbolic(self, source: _Source) -> bool:
        return any(node in self._symbols for atom, _ in source.form.terms for node in walk(atom))

    def _symbolic_padding(self, source: _Source, digits: list[_Digit]) -> Iterator[Expr]:
        """Yield the condition that the digits of an index of symbolic extent exceed it."""
        top = max(digits, key=lambda d: d.low)
        block = top.low * (top.extent if top.has_modulus else 1)
        if len(digits) == 1 and block == 1:
            return
        if source.var is None or source.form.const or top.has_modulus:
            raise self._error("divides what has no known extent")
        size = self._symbols[source.var]
        rest = self._sum([d for d in digits if d.low < block])
        number, below = IntImm(block, self._dtype), IntImm(-block, self._dtype)
        has_rest = Compare("<", BinOp("%", size, below), IntImm(0, self._dtype))
        is_last = Compare("==", self._simplified(top.value), BinOp("//", size, number))
        yield _join("and", [has_rest, is_last, Compare("<=", BinOp("%", size, number), rest)])

    def _in_block(self, digits: list[_Digit], block: int, edge: int, *, is_left: bool) -> Expr:
        """Return the condition that digits lie beyond an edge, in the edge's block.

        All padding lies in that block, so that comparing the digits below is enough.
        """
        rest = self._sum([d for d in digits if d.low < block])
        conditions: list[Expr] = []
        above = [d for d in digits if d.low >= block]
        if above and above[0].extent > 1:
            number = IntImm(edge // block, self._dtype)
            conditions.append(Compare("==", self._simplified(above[0].value), number))
        conditions.append(self._beyond(rest, edge % block, block - 1, is_left=is_left))
        return _join("and", conditions)

    def _beyond(self, rest: Expr, edge: int, greatest: int, *, is_left: bool) -> Expr:
        if is_left:
            return Compare("<", rest, IntImm(edge, self._dtype))
        if edge == greatest:
            return Compare("==", rest, IntImm(edge, self._dtype))
        match rest:
            case BinOp("//", inner, IntImm(divisor)):
                return Compare("<=", IntImm(edge * divisor, self._dtype), inner)
            case _:
                return Compare("<=", IntImm(edge, self._dtype), rest)

    def _all_padding(self) -> Expr:
        return _join("or", list(self._padding.values())) if self._padding else FALSE

    def _simplified(self, expr: Expr) -> Expr:
        return simplify(expr, self._ranges)

    def _error(self, reason: str) -> IndexMapError:
        return IndexMapError(f"the map {self._map} {reason}")


def _is_digit(atom: Expr) -> bool:
    return isinstance(atom, BinOp) and atom.op in ("//", "%")


def _size(source: _Source) -> int:
    return sum(1 for atom, _ in source.form.terms for _ in walk(atom))


def _join(op: LogicOp, conditions: Sequence[Expr]) -> Expr:
    total = conditions[0]
    for condition in conditions[1:]:
        total = Logic(op, total, condition)
    return total
