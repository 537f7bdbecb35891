"""Facts about variables at one point of a program, and conclusions from them.

The question is whether a program stays within its bounds. Where only the extents of loops count,
`simplify` and `bijectivity` beside this are quicker and say more about divisions.

Facts are ranges of variables, and linear forms that are not negative. A conclusion such as
`e <= high` is the claim that the form `high - e` is not negative: by the ranges alone, or after up
to two of the known forms are subtracted from it.

Example, in `for i in range(16): for j in range(64): if i * 64 + j < 1000:`

    ranges         i in 0..15, j in 0..63
    not negative   999 - 64 i - j
    the claim      i * 64 + j <= 999 is that 999 - 64 i - j is not negative
    by ranges      its least value is 999 - 960 - 63 = -24: not proved
    by the form    the claim minus the known form is 0: proved
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import Interval, affine_bounds, conditional_bounds, reach
from compiler.ir.arith.overflow import may_wrap
from compiler.ir.arith.simplify import canonical, normal, recombine
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
    CompareOp,
    Conditional,
    Expr,
    IntImm,
    Load,
    Logic,
    Not,
    Select,
    Var,
)
from compiler.ir.core.visit import transform_expr, walk

_NEGATED: dict[CompareOp, CompareOp] = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    "<=": ">",
    ">": "<=",
}
# A conclusion may need two conditions at once (`i < n - j` and `j < m`); more is not tried.
_MAX_CONDITIONS = 16
# Each alternative doubles the cases that a conclusion must hold in.
_MAX_ALTERNATIVES = 3
# Each choice in an expression doubles the cases.
_MAX_CHOICES = 4

Alternative: TypeAlias = tuple[Expr, Expr, bool, bool]
"""Two conditions of which one or both hold (or do not), and whether they are `pure`."""


@frozen
class Facts:
    """Ranges of variables, and linear forms that are not negative; all hold together.

    Attributes:
        ranges: The least and the greatest value of variables.
        not_negative: Linear forms that are zero or more.
        unknown: Variables that are defined, and whose values are not limited.
        alternatives: Conditions of which one or both hold.
        is_contradiction: Whether no value of some variable is left: this point is never reached.
    """

    ranges: Mapping[Var, Interval]
    not_negative: tuple[Affine, ...] = ()
    unknown: frozenset[Var] = frozenset()
    alternatives: tuple[Alternative, ...] = ()
    is_contradiction: bool = False

    def having(self, var: Var, extent: int) -> Facts:
        """Add a variable that runs from 0 to `extent - 1`."""
        return self.with_range(var, (0, extent - 1))

    def with_range(self, var: Var, interval: Interval) -> Facts:
        """Add a variable whose values lie in an interval."""
        return Facts(
            {**self.ranges, var: interval},
            self.not_negative,
            self.unknown,
            self.alternatives,
            self.is_contradiction or interval[0] > interval[1],
        )

    def within_range(self, var: Var, interval: Interval | None) -> Facts:
        """Narrow the range of a variable that has one; None says nothing."""
        current = self.ranges.get(var)
        if current is None or interval is None:
            return self
        low, high = max(current[0], interval[0]), min(current[1], interval[1])
        return self if (low, high) == current else self.with_range(var, (low, high))

    def with_unknown(self, *variables: Var) -> Facts:
        """Add variables of which nothing is known."""
        return replace(self, unknown=self.unknown.union(variables))

    def knows(self, var: Var) -> bool:
        """Return whether a variable is defined."""
        return var in self.ranges or var in self.unknown

    def assuming(self, condition: Expr, *, holds: bool = True, pure: bool = False) -> Facts:
        """Add what a condition says.

        Args:
            condition: Any expression of type bool; what can't be used is left out.
            holds: Whether it is the condition or its opposite that is known.
            pure: Whether nothing is stored while the condition counts; only then may
                it speak of elements of buffers.
        """
        facts = self
        for said in _forms(condition, holds, self):
            form = _without_units(said, self.ranges)
            if pure or not _has_load(form):
                facts = facts._with(form)
        new = ((lhs, rhs, side, pure) for lhs, rhs, side in _either(condition, holds))
        alternatives = (*facts.alternatives, *new)[:_MAX_ALTERNATIVES]
        return replace(facts, alternatives=alternatives) if alternatives else facts

    def is_exact(self, expr: Expr) -> bool:
        """Return whether the laws of whole numbers hold for an integer: nothing in it wraps around.

        The arithmetic of a variable that may be anything may.
        """
        if not is_integer(dtype_of(expr)) or may_wrap(expr):
            return False
        return isinstance(expr, Var) or not any(node in self.unknown for node in walk(expr))

    def _with(self, form: Affine) -> Facts:
        match form.terms:
            case ((Var() as var, coefficient),) if var in self.ranges:
                low, high = self.ranges[var]
                if coefficient > 0:
                    low = max(low, -(form.const // coefficient))
                else:
                    high = min(high, form.const // -coefficient)
                return self.with_range(var, (low, high))
            case _:
                not_negative = (*self.not_negative, form)[:_MAX_CONDITIONS]
                return replace(self, not_negative=not_negative)

    def bounds(self, expr: Expr) -> Interval | None:
        """Return an interval that holds the values of an integer expression, if one is known."""
        return conditional_bounds(canonical(expr, self.ranges), self.ranges, self.not_negative)

    def within(self, expr: Expr, low: int, high: int) -> bool:
        """Return whether an integer expression surely lies in `low` to `high`, both included."""
        form = canonical(expr, self.ranges)
        interval = affine_bounds(form, self.ranges)
        if interval is not None and _lies_in(interval, low, high):
            return True
        holds = self.is_contradiction or (
            self._is_not_negative(form - Affine((), low, form.dtype))
            and self._is_not_negative(Affine((), high, form.dtype) - form)
        )
        return (
            holds
            or _lies_in(reach(expr, self.ranges), low, high)
            or self._in_all_cases(lambda case: case.within(expr, low, high))
            or self._on_both_sides(expr, lambda case, side: case.within(side, low, high))
        )

    def at_least(self, greater: Expr, smaller: Expr) -> bool:
        """Return whether `greater >= smaller` surely holds."""
        difference = canonical(greater, self.ranges) - canonical(smaller, self.ranges)
        holds = self.is_contradiction or self._is_not_negative(difference)
        return holds or self._in_all_cases(lambda case: case.at_least(greater, smaller))

    def _in_all_cases(self, is_so: Callable[[Facts], bool]) -> bool:
        """Return whether something holds whichever side of some alternative does."""
        for number, (lhs, rhs, holds, pure) in enumerate(self.alternatives):
            others = self.alternatives[:number] + self.alternatives[number + 1 :]
            rest = replace(self, alternatives=others)
            if all(is_so(rest.assuming(side, holds=holds, pure=pure)) for side in (lhs, rhs)):
                return True
        return False

    def _on_both_sides(self, expr: Expr, is_so: Callable[[Facts, Expr], bool]) -> bool:
        """Return whether something holds of an expression, whatever its first condition chooses."""
        if sum(isinstance(node, Select | Conditional) for node in walk(expr)) > _MAX_CHOICES:
            return False
        choice = next((n for n in walk(expr) if isinstance(n, Select | Conditional)), None)
        if not isinstance(choice, Select | Conditional):
            return False
        for side, holds in ((choice.then, True), (choice.otherwise, False)):
            taken = transform_expr(expr, lambda node: side if node == choice else None)  # noqa: B023
            if not is_so(self.assuming(choice.condition, holds=holds, pure=True), taken):
                return False
        return True

    def same(self, one: Expr, other: Expr) -> bool:
        """Return whether two integer expressions surely have the same value."""
        return self.at_least(one, other) and self.at_least(other, one)

    def _is_not_negative(self, form: Affine) -> bool:
        if self._follows(form) or self._follows(_without_units(form, self.ranges)):
            return True
        without = _without_quotient(form, self.ranges)
        if without is not None and self._is_not_negative(without):
            return True
        return self._is_obvious(self._least(form)) or self._is_not_negative_by_parts(form)

    def _least(self, form: Affine) -> Affine:
        """Return a form with the greatest values of the quotients that it subtracts.

        A condition on the dividend gives them: `x <= 1023` means `x // 32 <= 31`.
        """
        const, terms = form.const, []
        for atom, coefficient in form.terms:
            greatest = self._greatest_quotient(atom) if coefficient < 0 else None
            if greatest is None:
                terms.append((atom, coefficient))
            else:
                const += coefficient * greatest
        return Affine(tuple(terms), const, form.dtype)

    def _greatest_quotient(self, atom: Expr) -> int | None:
        match atom:
            case BinOp("//", lhs, IntImm(divisor)) if divisor > 0 and not may_wrap(lhs):
                dividend = normal(lhs, self.ranges)
                limits = (condition + dividend for condition in self.not_negative)
                quotients = (limit.const // divisor for limit in limits if not limit.terms)
                return min(quotients, default=None)
            case _:
                return None

    def _is_not_negative_by_parts(self, form: Affine) -> bool:
        """Take a minimum or maximum apart: the least of two is at least what both are."""
        for atom, coefficient in form.terms:
            if isinstance(atom, BinOp) and atom.op in ("min", "max") and not may_wrap(atom):
                rest = Affine(tuple(t for t in form.terms if t[0] != atom), form.const, form.dtype)
                sides = (
                    rest + normal(side, self.ranges).scaled(coefficient)
                    for side in (atom.lhs, atom.rhs)
                )
                # To subtract the least of two is to subtract either, or less.
                enough = any if (atom.op == "min") == (coefficient < 0) else all
                return enough(self._is_not_negative(side) for side in sides)
        return False

    def _follows(self, form: Affine) -> bool:
        if self._is_obvious(form):
            return True
        return any(self._follows_at_once(part) for part in (form, *self._enlarged(form)))

    def _enlarged(self, form: Affine) -> Iterator[Affine]:
        """Yield multiples of a form, to which conditions apply that do not apply to the form.

        It is an integer: if `n * form` is greater than `-n`, it is not negative.
        """
        factors = {
            coefficient / form.coefficient(atom)
            for condition in self.not_negative
            for atom, coefficient in condition.terms
            if form.coefficient(atom)
        }
        for factor in factors:
            if factor > 1 and factor.is_integer():
                slack = Affine((), int(factor) - 1, form.dtype)
                yield form.scaled(int(factor)) + slack

    def _follows_at_once(self, form: Affine) -> bool:
        helpful = [part for c in self.not_negative for part in c.multiples(form)]
        rests = [form - condition for condition in helpful]
        if any(self._is_obvious(rest) for rest in rests):
            return True
        return any(self._is_obvious(rest - condition) for rest in rests for condition in helpful)

    def _is_obvious(self, form: Affine) -> bool:
        interval = affine_bounds(form, self.ranges)
        return interval is not None and interval[0] >= 0


def _lies_in(interval: Interval, low: int, high: int) -> bool:
    return low <= interval[0] and interval[1] <= high


def _without_units(form: Affine, ranges: Mapping[Var, Interval]) -> Affine:
    """Return a form that is not negative just if `form` is, without quotients that occur once."""
    without = _without_quotient(form, ranges, only_units=True)
    return form if without is None else _without_units(without, ranges)


def _without_quotient(
    form: Affine, ranges: Mapping[Var, Interval], *, only_units: bool = False
) -> Affine | None:
    """Return a form without one of the quotients in it; if it is not negative, neither is `form`.

    With `x - d < d * (x // d) <= x`, `d * form` is bounded by a form that speaks of `x` itself, as
    conditions do. `form` is an integer, so `d * form` need only be greater than `-d`. Of a quotient
    that occurs just once (or minus once: `only_units`) the opposite holds too.
    """
    for atom, coefficient in form.terms:
        if only_units and abs(coefficient) != 1:
            continue
        match atom:
            case BinOp("//", lhs, IntImm(divisor)) if divisor > 0 and not may_wrap(lhs):
                rest = Affine(tuple(t for t in form.terms if t[0] != atom), form.const, form.dtype)
                least = normal(lhs, ranges)
                if coefficient > 0:
                    least -= Affine((), divisor - 1, form.dtype)
                slack = Affine((), divisor - 1, form.dtype)
                return recombine(rest.scaled(divisor) + least.scaled(coefficient) + slack)
            case _:
                pass
    return None


def _forms(condition: Expr, holds: bool, facts: Facts) -> Iterator[Affine]:
    """Yield linear forms that are not negative if the condition holds, or does not."""
    ranges = facts.ranges
    match condition:
        case Not(value):
            yield from _forms(value, not holds, facts)
        case Logic(op, lhs, rhs) if (op == "and") == holds:
            yield from _forms(lhs, holds, facts)
            yield from _forms(rhs, holds, facts)
        case Compare(op, lhs, rhs) if facts.is_exact(lhs) and facts.is_exact(rhs):
            difference = canonical(lhs, ranges) - canonical(rhs, ranges)
            one = Affine((), 1, difference.dtype)
            match op if holds else _NEGATED[op]:
                case "<":
                    yield difference.scaled(-1) - one
                case "<=":
                    yield difference.scaled(-1)
                case ">":
                    yield difference - one
                case ">=":
                    yield difference
                case "==":
                    yield difference
                    yield difference.scaled(-1)
                case "!=":
                    yield from _off_the_end(difference, ranges)
        case _:
            pass


def _off_the_end(form: Affine, ranges: Mapping[Var, Interval]) -> Iterator[Affine]:
    """Yield what follows from a form that is not zero, if zero is an end of its range."""
    interval = affine_bounds(form, ranges)
    one = Affine((), 1, form.dtype)
    if interval is not None and interval[0] == 0:
        yield form - one
    elif interval is not None and interval[1] == 0:
        yield form.scaled(-1) - one


def _either(condition: Expr, holds: bool) -> Iterator[tuple[Expr, Expr, bool]]:
    """Yield two conditions of which one holds, or does not, if the whole does, or does not."""
    match condition:
        case Not(value):
            yield from _either(value, not holds)
        case Logic(op, lhs, rhs) if (op == "and") == holds:
            yield from _either(lhs, holds)
            yield from _either(rhs, holds)
        case Logic(_, lhs, rhs):
            yield lhs, rhs, holds
        case _:
            pass


def _has_load(form: Affine) -> bool:
    return any(isinstance(node, Load) for atom, _ in form.terms for node in walk(atom))
