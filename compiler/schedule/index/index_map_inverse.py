"""Invert index maps: which old element is at a new index, and which new indices are padding.

Each new index is read as a sum of splits, `scale * (source // low % extent)`, that follow each
other without a gap. All splits of one source, again without a gap, give its value. A source is an
old index, or a sum of old indices whose splits are then inverted in turn. New indices whose source
is outside of its range are padding. (TVM's iterator maps solve the same problem.)

Splits are taken apart by `peel` of `compiler.ir.arith.iter_map`, but counted otherwise than by its
`split_of`: of `i % 8` all 8 values count, though `i` may have only 6. The other two are padding.
Whether there is an inverse at all, also for maps with gaps, is answered by
`compiler.ir.arith.bijectivity`.

Example, a vector of 10 elements in rows of 4, `i -> (i // 4, i % 4)`:

    axis0 is `i // 4`: the split of `i` with low 4
    axis1 is `i % 4`:  the split of `i` with low 1 and extent 4
    both splits:       i = axis0 * 4 + axis1
    padding:           axis0 == 2 and 2 <= axis1, the indices of the elements 10 and 11
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import IterSplit, Terms, dense_width, peel, terms_of
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import FALSE, BinOp, Compare, Expr, IntImm, Logic, LogicOp, Var
from compiler.ir.core.visit import substitute, walk
from compiler.schedule.index.index_map import IndexMap, IndexMapError
from compiler.schedule.index.row_major import Renumbered, renumbered

_Key: TypeAlias = tuple[Terms, int]


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
        IndexMapError: If two elements may get one index, or the map is no sum of splits.
    """
    sizes = [IntImm(size) if isinstance(size, int) else size for size in shape]
    flat = renumbered(index_map, sizes)
    if flat is not None:
        return _digits_of(flat, index_map, inverse_of(flat.index_map, flat.sizes))
    index_map.map_shape([extent_or_unknown(size) for size in sizes])
    extents = dict(zip(index_map.params, sizes, strict=True))
    try:
        return _Inversion(index_map, extents, index_map.results).run()
    except IndexMapError:
        # Simplified within their ranges, more maps are sums of splits. The form as it was written
        # comes first: its padding is never larger.
        ranges = {param: extent_or_unknown(size) for param, size in extents.items()}
        simplified = tuple(simplify(result, ranges) for result in index_map.results)
        return _Inversion(index_map, extents, simplified).run()


def _digits_of(flat: Renumbered, index_map: IndexMap, inverse: Inverse) -> Inverse:
    """Return the inverse of a map from that with its row-major numbers as variables."""
    values = dict(zip(flat.index_map.params, inverse.index_map.results, strict=True))
    values.update({param: substitute(digit, values) for param, digit in flat.digits.items()})
    results = tuple(values[param] for param in index_map.params)
    return Inverse(IndexMap(inverse.index_map.params, results), inverse.padding)


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
class _Part:
    """A split of a source, and the expression of the new indices that has its value.

    `has_modulus` is true for `source // low % extent`, false for the greatest one, `source // low`.
    """

    split: IterSplit
    has_modulus: bool
    value: Expr

    @property
    def low(self) -> int:
        """Where the split begins in its source."""
        return self.split.low

    @property
    def extent(self) -> int:
        """How many values it takes, those in the padding among them."""
        return self.split.extent

    @property
    def block(self) -> int:
        """The period of the source after which the split repeats; without a modulus, its step."""
        return self.low * (self.extent if self.has_modulus else 1)


@dataclass
class _Source:
    """An expression that splits are parts of; it takes the values `form.const` to `limit - 1`."""

    form: Affine
    limit: int
    parts: list[_Part] = field(default_factory=list)

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

    # From indices to splits

    def _take(self, value: Expr, form: Affine, size: int) -> None:
        """Add the splits of `form`, which has `size` values and is computed by `value`."""
        if form.const:
            raise self._error("does not start at 0")
        splits = [(self._split(atom, scale), atom) for atom, scale in form.terms]
        if len(splits) > 1:
            splits = [(split, atom) for split, atom in splits if split.extent > 1]
        if dense_width([(split.scale, split.extent) for split, _ in splits]) != size:
            raise self._error("leaves gaps between elements, or lets two of them collide")
        splits.sort(key=lambda item: item[0].scale)
        for number, (split, atom) in enumerate(splits):
            part = value
            if number < len(splits) - 1:
                part = BinOp("%", part, IntImm(split.scale * split.extent, self._dtype))
            if split.scale > 1:
                part = BinOp("//", part, IntImm(split.scale, self._dtype))
            has_modulus = peel(atom).extent is not None
            self._source(split.source).parts.append(_Part(split, has_modulus, part))

    def _split(self, atom: Expr, scale: int) -> IterSplit:
        """Read a term as a split. All values of a remainder count, those in the padding too."""
        base, low, modulus = peel(atom)
        if base is atom and not isinstance(atom, Var):
            raise self._error("is no sum of splits of the old indices")
        limit = self._source(base).limit
        return IterSplit(base, limit, low, -(-limit // low) if modulus is None else modulus, scale)

    def _source(self, expr: Expr) -> _Source:
        form = affine(expr)
        key = (terms_of(form), form.const)
        if key not in self._sources:
            self._sources[key] = _Source(form, self._limit(form))
        return self._sources[key]

    def _limit(self, form: Affine) -> int:
        """Return the end of the values of a source, which start at its constant."""
        if form.const < 0:
            raise self._error("takes quotients or remainders of negative numbers")
        match form.terms:
            case ((Var() as var, 1),) if var in self._extents:
                return form.const + self._extents[var]
            case ((Var(), _),) | ():
                raise self._error("is no sum of splits of the old indices")
            case _:
                splits = (self._split(atom, scale) for atom, scale in form.terms)
                return form.const + 1 + sum(s.scale * (s.extent - 1) for s in splits)

    # From splits to indices

    def _solve(self) -> dict[Var, Expr]:
        """Return every old index in terms of the new ones."""
        while True:
            # Greatest first: solving a sum yields parts of the smaller sums in it.
            sums = [s for s in self._sources.values() if s.var is None and s.parts]
            if not sums:
                break
            source = max(sums, key=_size)
            value = self._value(source)
            source.parts.clear()
            form = Affine(source.form.terms, 0, source.form.dtype)
            self._take(value, form, source.limit - source.form.const)
        old_indices: dict[Var, Expr] = {}
        for source in self._sources.values():
            if source.var is not None and source.parts:
                if source.var in old_indices:
                    raise self._error("takes parts of one index in two ways")
                old_indices[source.var] = self._value(source)
        for param in self._map.params:
            if param not in old_indices:
                if self._extents[param] > 1:
                    raise self._error(f"loses the index {param.name}")
                old_indices[param] = IntImm(0, self._dtype)
        return old_indices

    def _value(self, source: _Source) -> Expr:
        """Return the value of a source from its splits, without its constant."""
        parts = sorted(source.parts, key=lambda part: (part.low, part.extent))
        width = dense_width([(part.low, part.extent) for part in parts if part.extent > 1])
        if width is None:
            raise self._error("loses elements, or lets two of them collide")
        if width < source.limit:
            raise self._error("lets two elements collide")
        value = self._sum(parts)
        self._pad(source, parts, value, width)
        shift = IntImm(source.form.const, self._dtype)
        return self._simplified(BinOp("-", value, shift))

    def _sum(self, parts: Sequence[_Part]) -> Expr:
        """Return the number that some parts make, the coarsest first."""
        total: Expr = IntImm(0, self._dtype)
        for part in sorted(parts, key=lambda part: -part.low):
            scaled = BinOp("*", part.value, IntImm(part.low, self._dtype))
            total = BinOp("+", total, scaled)
        return self._simplified(total)

    # Padding

    def _pad(self, source: _Source, parts: list[_Part], value: Expr, size: int) -> None:
        """Add the condition that the parts make a number outside the source's range."""
        left, right = source.form.const, source.limit
        conditions: list[Expr] = []
        if self._is_symbolic(source):
            conditions.extend(self._symbolic_padding(source, parts))
        elif source.var is None:
            if left > 0:
                conditions.append(Compare("<", value, IntImm(left, self._dtype)))
            if right < size:
                conditions.append(Compare("<=", IntImm(right, self._dtype), value))
        else:
            block = max(parts, key=lambda part: part.low).block
            if left >= block > 1:
                raise self._error("does not start at 0")
            if left > 0:
                conditions.append(self._in_block(parts, block, left, is_left=True))
            if right < size:
                conditions.append(self._in_block(parts, block, right, is_left=False))
        if conditions:
            self._padding[frozenset(source.form.terms), left] = _join("or", conditions)

    def _is_symbolic(self, source: _Source) -> bool:
        return any(node in self._symbols for atom, _ in source.form.terms for node in walk(atom))

    def _symbolic_padding(self, source: _Source, parts: list[_Part]) -> Iterator[Expr]:
        """Yield the condition that the parts of an index of symbolic extent exceed it."""
        top = max(parts, key=lambda part: part.low)
        block = top.block
        if len(parts) == 1 and block == 1:
            return
        if source.var is None or source.form.const or top.has_modulus:
            raise self._error("divides what has no known extent")
        size = self._symbols[source.var]
        rest = self._sum([part for part in parts if part.low < block])
        number, below = IntImm(block, self._dtype), IntImm(-block, self._dtype)
        has_rest = Compare("<", BinOp("%", size, below), IntImm(0, self._dtype))
        is_last = Compare("==", self._simplified(top.value), BinOp("//", size, number))
        yield _join("and", [has_rest, is_last, Compare("<=", BinOp("%", size, number), rest)])

    def _in_block(self, parts: list[_Part], block: int, edge: int, *, is_left: bool) -> Expr:
        """Return the condition that parts lie beyond an edge, in the edge's block.

        All padding lies in that block, so that comparing the parts below is enough.
        """
        rest = self._sum([part for part in parts if part.low < block])
        conditions: list[Expr] = []
        above = [part for part in parts if part.low >= block]
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


def _size(source: _Source) -> int:
    return sum(1 for atom, _ in source.form.terms for _ in walk(atom))


def _join(op: LogicOp, conditions: Sequence[Expr]) -> Expr:
    total = conditions[0]
    for condition in conditions[1:]:
        total = Logic(op, total, condition)
    return total
