"""Simplification and bounds, against evaluating the expression at every point."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.bounds import bounds, combine
from compiler.ir.arith.simplify import canonical, equal, prove, simplify
from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    ArithOp,
    BinOp,
    Cast,
    Compare,
    CompareOp,
    Expr,
    IntImm,
    Load,
    Logic,
    Not,
    Select,
    Var,
    make_buffer,
)
from compiler.ir.core.visit import substitute, walk

EXTENTS = {Var("i"): 4, Var("j"): 6, Var("k"): 9}


def value(expr: Expr, env: Mapping[Var, int]) -> int:
    """Evaluate by Python's own integers."""
    match expr:
        case Var():
            return env[expr]
        case IntImm(literal):
            return literal
        case BinOp(op, lhs, rhs):
            a, b = value(lhs, env), value(rhs, env)
            return min(a, b) if op == "min" else max(a, b) if op == "max" else calculate(op, a, b)
        case Compare(op, lhs, rhs):
            return int(compare(op, value(lhs, env), value(rhs, env)))
        case Logic(op, lhs, rhs):
            return (
                (value(lhs, env) and value(rhs, env))
                if op == "and"
                else (value(lhs, env) or value(rhs, env))
            )
        case Not(inner):
            return int(not value(inner, env))
        case Select(condition, then, otherwise):
            return value(then if value(condition, env) else otherwise, env)
        case _:
            raise AssertionError(expr)


def calculate(op: ArithOp, a: int, b: int) -> int:
    table = {"+": a + b, "-": a - b, "*": a * b}
    return table[op] if op in table else a // b if op == "//" else a % b


def compare(op: CompareOp, a: int, b: int) -> bool:
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


LEAVES = st.one_of(st.sampled_from(list(EXTENTS)), st.integers(-12, 12).map(IntImm))
POSITIVE = st.integers(1, 12).map(IntImm)


def grow(children: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    arithmetic = st.builds(BinOp, st.sampled_from(["+", "-", "min", "max"]), children, children)
    scaled = st.builds(BinOp, st.just("*"), children, LEAVES)
    divided = st.builds(BinOp, st.sampled_from(["//", "%"]), children, POSITIVE)
    chosen = st.builds(Select, conditions(children), children, children)
    return st.one_of(arithmetic, scaled, divided, chosen)


def conditions(numbers: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    comparison = st.builds(Compare, st.sampled_from(get_args(CompareOp)), numbers, numbers)
    return st.one_of(
        comparison,
        st.builds(Not, comparison),
        st.builds(Logic, st.sampled_from(["and", "or"]), comparison, comparison),
    )


EXPRESSIONS = st.recursive(LEAVES, grow, max_leaves=8)


def points(expr: Expr) -> list[dict[Var, int]]:
    """Return every binding of the variables of `expr`, and some of those it lacks."""
    used = {n for n in walk(expr) if isinstance(n, Var)}
    ranges = [range(extent) if var in used else (0,) for var, extent in EXTENTS.items()]
    return [dict(zip(EXTENTS, point, strict=True)) for point in product(*ranges)]


@given(EXPRESSIONS)
def test_simplify_keeps_the_value_at_every_point(expr: Expr) -> None:
    simple = simplify(expr, EXTENTS)
    assert is_integer(dtype_of(simple))
    for env in points(expr):
        assert value(simple, env) == value(expr, env)


@given(EXPRESSIONS)
def test_bounds_hold_at_every_point(expr: Expr) -> None:
    interval = bounds(expr, EXTENTS)
    if interval is not None:
        values = [value(expr, env) for env in points(expr)]
        assert interval[0] <= min(values)
        assert max(values) <= interval[1]


ENDS = st.tuples(st.integers(-9, 9), st.integers(0, 6)).map(lambda ends: (ends[0], sum(ends)))


RESULTS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    "min": min,
    "max": max,
}


@given(op=st.sampled_from(sorted(RESULTS)), a=ENDS, b=ENDS)
def test_the_combination_of_intervals_holds_all_results(
    op: str, a: tuple[int, int], b: tuple[int, int]
) -> None:
    interval = combine(op, a, b)
    if interval is None:
        assert op in ("//", "%", "<<"), "the others are defined for all numbers"
        assert b[0] <= 0
        return
    pairs = product(range(a[0], a[1] + 1), range(b[0], b[1] + 1))
    results = [RESULTS[op](x, y) for x, y in pairs]
    assert interval[0] <= min(results)
    assert max(results) <= interval[1]
    if op != "%":
        assert interval == (min(results), max(results)), "no wider than needed"


@given(conditions(EXPRESSIONS))
def test_what_is_proved_is_true_everywhere(condition: Expr) -> None:
    if prove(condition, EXTENTS):
        assert all(value(condition, env) for env in points(condition))


@given(EXPRESSIONS, EXPRESSIONS)
def test_expressions_called_equal_are_equal_everywhere(a: Expr, b: Expr) -> None:
    if equal(a, b, EXTENTS):
        for env in points(BinOp("+", a, b)):
            assert value(a, env) == value(b, env)


@given(EXPRESSIONS)
def test_a_normal_form_of_a_normal_form_is_itself(expr: Expr) -> None:
    once = simplify(expr, EXTENTS)
    if not any(isinstance(n, Select) for n in walk(once)):
        assert affine(simplify(once, EXTENTS)) == affine(once)


def test_sums_have_exact_bounds() -> None:
    i, j, _ = EXTENTS
    expr = BinOp("-", BinOp("*", i, IntImm(3)), BinOp("+", j, IntImm(1)))
    assert bounds(expr, EXTENTS) == (-6, 8)


def test_a_split_index_is_recombined() -> None:
    k = Var("k")
    whole = BinOp("*", BinOp("//", k, IntImm(4)), IntImm(4))
    assert simplify(BinOp("+", whole, BinOp("%", k, IntImm(4)))) is k


def test_neighbouring_splits_of_one_value_are_joined() -> None:
    x = Var("x")

    def part(low: int, extent: int | None, scale: int) -> Expr:
        """Return `scale * (x // low % extent)`."""
        quotient = BinOp("//", x, IntImm(low))
        rest = quotient if extent is None else BinOp("%", quotient, IntImm(extent))
        return BinOp("*", rest, IntImm(scale))

    def total(*parts: Expr) -> Affine:
        return canonical(functools.reduce(lambda a, b: BinOp("+", a, b), parts))

    assert total(part(32, None, 8), part(4, 8, 1)) == total(part(4, None, 1))
    assert total(part(32, 3, 8), part(4, 8, 1)) == total(part(4, 24, 1))
    assert total(part(96, None, 72), part(32, 3, 24), part(4, 8, 3)) == total(part(4, None, 3))
    for scale, low in ((7, 32), (9, 32), (8, 16), (8, 64)):
        apart = total(part(low, None, scale), part(4, 8, 1))
        assert len(apart.terms) == 2, "they are no neighbours"


def test_a_split_has_one_form_however_it_is_written() -> None:
    x = Var("x")
    remainder_first = BinOp("//", BinOp("%", x, IntImm(32)), IntImm(4))
    quotient_first = BinOp("%", BinOp("//", x, IntImm(4)), IntImm(8))
    assert canonical(remainder_first) == canonical(quotient_first)


def test_a_split_of_a_sum_omits_the_terms_below_it() -> None:
    i, j = Var("i"), Var("j")
    fused = BinOp("+", BinOp("*", i, IntImm(4)), j)
    part = BinOp("//", BinOp("%", fused, IntImm(12)), IntImm(4))
    assert canonical(part, {i: 6, j: 4}) == affine(BinOp("%", i, IntImm(3)))
    assert canonical(part, {i: 6, j: 5}) != affine(BinOp("%", i, IntImm(3)))


@given(EXPRESSIONS)
def test_a_canonical_form_has_the_value_of_the_expression(expr: Expr) -> None:
    form = canonical(expr, EXTENTS).to_expr()
    assert all(value(form, env) == value(expr, env) for env in points(expr))


def test_a_fused_index_comes_apart() -> None:
    i, j = Var("i"), Var("j")
    fused = BinOp("+", BinOp("*", i, IntImm(8)), j)
    extents = {i: 5, j: 8}
    assert simplify(BinOp("//", fused, IntImm(8)), extents) is i
    assert simplify(BinOp("%", fused, IntImm(8)), extents) is j
    # Unknown, j might reach over: nothing may be assumed.
    assert simplify(BinOp("//", fused, IntImm(8)), {i: 5}) is not i


def test_substitute_replaces_a_variable_by_its_identity() -> None:
    i, twin = Var("i"), Var("i")
    assert substitute(BinOp("+", i, twin), {i: IntImm(7)}) == BinOp("+", IntImm(7), twin)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_data_that_wraps_around_is_not_taken_for_whole_numbers(dtype: DType) -> None:
    x = Load(make_buffer("N", (8,), dtype), (IntImm(0),))
    many, few = IntImm(100, dtype), IntImm(4, dtype)
    conditions = (
        Compare(">", BinOp("+", x, many), x),
        Compare("==", BinOp("//", BinOp("*", x, few), few), x),
        Compare("==", BinOp("max", BinOp("+", x, many), x), x),
    )
    for condition in conditions:
        assert simplify(condition) == condition


def test_a_literal_is_converted_as_numbers_are() -> None:
    assert simplify(Cast("uint8", IntImm(260))) == IntImm(4, "uint8")
    assert simplify(Cast("int8", IntImm(200))) == IntImm(-56, "int8")
    assert bounds(Cast("uint8", IntImm(260)), {}) == (4, 4)
