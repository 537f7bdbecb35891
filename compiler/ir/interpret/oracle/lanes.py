"""Find loops with independent iterations, for the oracle to run them as arrays.

Iterations of a variable are lanes under one condition. For any values of the other variables, two
iterations must not share an element that one of them writes. Each lane still runs in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.ir.arith.affine import affine
from compiler.ir.arith.bounds import bounds
from compiler.ir.core.foreign import FOREIGN
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Broadcast,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Ramp,
    Seq,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.opaque import OPAQUE
from compiler.ir.core.visit import substitute, transform_expr, walk

_WITH_EFFECT = OPAQUE.keys() | FOREIGN.keys()
Indices = tuple[Expr, ...]


class NotLanesError(Exception):
    """A statement that can't run for several iterations at once."""


@dataclass
class Touched:
    """The elements that a statement reads and writes, and the variables that change inside it."""

    places: dict[Buffer, list[Indices]] = field(default_factory=dict)
    written: set[Buffer] = field(default_factory=set)
    inner: dict[Var, int] = field(default_factory=dict)  # loops inside, by extent
    named: set[Var] = field(default_factory=set)  # names of values inside

    @classmethod
    def by(cls, *stmts: Stmt) -> Touched | None:
        """Return the accesses of statements; None if they must run one iteration at a time."""
        touched = cls()
        try:
            for stmt in stmts:
                touched._stmt(stmt, {})
        except NotLanesError:
            return None
        return touched

    def is_lane(self, var: Var, free: Mapping[Var, int]) -> bool:
        """Return whether the iterations of `var` are lanes.

        Args:
            var: A variable that is bound outside of the statements.
            free: Others that may differ between two iterations, by extent.
        """
        ranges = {**self.inner, **free}
        ranges.pop(var, None)
        return all(
            any(self._separates(var, column, ranges) for column in zip(*places, strict=True))
            for buffer, places in self.places.items()
            if buffer in self.written
        )

    def _separates(self, var: Var, indices: tuple[Expr, ...], ranges: Mapping[Var, int]) -> bool:
        """Return whether one dimension's indices, in all accesses, separate the values of `var`.

        They do if each is `c * var + fixed + rest`, and the rests span less than `c`.
        """
        shape: tuple[int, frozenset[tuple[Expr, int]]] | None = None
        low = high = None
        for index in indices:
            form = affine(index)
            fixed: set[tuple[Expr, int]] = set()
            first = last = form.const
            for atom, scale in form.terms:
                if atom is var:
                    continue
                used = {node for node in walk(atom) if isinstance(node, Var | Load)}
                if var in used or any(isinstance(u, Load) or u in self.named for u in used):
                    return False
                if not used & ranges.keys():
                    fixed.add((atom, scale))
                    continue
                span = bounds(atom, ranges)
                if span is None:
                    return False
                first += min(span[0] * scale, span[1] * scale)
                last += max(span[0] * scale, span[1] * scale)
            terms = (form.coefficient(var), frozenset(fixed))
            if shape is not None and shape != terms:
                return False
            shape = terms
            low = first if low is None else min(low, first)
            high = last if high is None else max(high, last)
        assert shape is not None
        assert low is not None
        assert high is not None
        return high - low < abs(shape[0])

    def _stmt(self, stmt: Stmt, values: Mapping[Var, Expr]) -> None:  # noqa: C901 - one case a node
        """Add a statement; `values` are those of the iterators of the blocks around it."""
        match stmt:
            case Store(buffer, indices, value):
                self._exprs(values, *indices, value)
                self._touch(buffer, indices, values)
                self.written.add(buffer)
            case Evaluate(value):
                is_hint = isinstance(value, Call) and value.name == "assume"
                if isinstance(value, Call) and not is_hint and value.name in _WITH_EFFECT:
                    raise NotLanesError
                self._exprs(values, value)
            case Let(var, value, body):
                self._exprs(values, value)
                self.named.add(var)
                self._stmt(body, values)
            case Seq(stmts):
                for child in stmts:
                    self._stmt(child, values)
            case If(condition, then, otherwise):
                self._exprs(values, condition)
                self._stmt(then, values)
                if otherwise is not None:
                    self._stmt(otherwise, values)
            case For(var, IntImm(extent), body):
                self.inner[var] = extent
                self._stmt(body, values)
            case BlockRealize(iter_values, predicate, block) if not (
                block.alloc_buffers or block.match_buffers
            ):
                self._exprs(values, *iter_values, predicate)
                bound = {
                    iterator.var: substitute(value, values)
                    for iterator, value in zip(block.iter_vars, iter_values, strict=True)
                }
                for part in (block.init, block.body):
                    if part is not None:
                        self._stmt(part, {**values, **bound})
            case For() | While() | BlockRealize() | Allocate():
                raise NotLanesError

    def _exprs(self, values: Mapping[Var, Expr], *exprs: Expr) -> None:
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, Load):
                    self._touch(node.buffer, node.indices, values)

    def _touch(self, buffer: Buffer, indices: Indices, values: Mapping[Var, Expr]) -> None:
        places = tuple(self._scalar(substitute(index, values)) for index in indices)
        self.places.setdefault(buffer, []).append(places)

    def _scalar(self, index: Expr) -> Expr:
        """Return an index with a variable for the lanes of a vector."""

        def scalar(node: Expr) -> Expr | None:
            match node:
                case Ramp(base, stride, lanes):
                    lane = Var("lane")
                    self.inner[lane] = lanes
                    return BinOp("+", base, BinOp("*", lane, IntImm(stride)))
                case Broadcast(value, _):
                    return value
                case _:
                    return None

        return transform_expr(index, scalar)
