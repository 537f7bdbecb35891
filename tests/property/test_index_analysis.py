"""What schedules believe of indices, against running the loops: digits, spans, guards."""

from __future__ import annotations

import math
from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import covering_sources, determined
from compiler.ir.arith.iter_map import terms_of
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.ir.core.visit import walk
from compiler.schedule.index.iter_form import in_iter_form
from compiler.schedule.index.region import contains, hull, span_of
from compiler.schedule.primitives.sampling.sample import divisors, num_tiles, sample_tile
from tests.property.acceptance import Acceptance

VARS = tuple(Var(name) for name in "abc")


def value(expr: Expr, env: dict[Var, int]) -> int:
    match expr:
        case Var():
            return env[expr]
        case IntImm(literal):
            return literal
        case BinOp(op, lhs, rhs):
            a, b = value(lhs, env), value(rhs, env)
            return {"+": a + b, "-": a - b, "*": a * b}[op] if op in "+-*" else (
                a // b if op == "//" else a % b
            )  # fmt: skip
        case _:
            raise NotImplementedError(expr)


def form_value(form: Affine, env: dict[Var, int]) -> int:
    return form.const + sum(scale * value(atom, env) for atom, scale in form.terms)


def number(n: int) -> IntImm:
    return IntImm(n)


leaf = st.sampled_from(VARS)
scaled = st.builds(lambda v, c: BinOp("*", v, number(c)), leaf, st.integers(1, 6))
sums = st.recursive(
    st.one_of(leaf, scaled),
    lambda inner: st.one_of(
        st.builds(lambda a, b: BinOp("+", a, b), inner, inner),
        st.builds(lambda a, c: BinOp("//", a, number(c)), inner, st.integers(1, 6)),
        st.builds(lambda a, c: BinOp("%", a, number(c)), inner, st.integers(1, 6)),
        st.builds(lambda a, c: BinOp("*", a, number(c)), inner, st.integers(1, 4)),
    ),
    max_leaves=4,
)
extents = st.fixed_dictionaries({v: st.integers(1, 5) for v in VARS})


def points(sizes: dict[Var, int]) -> list[dict[Var, int]]:
    return [dict(zip(sizes, point, strict=True)) for point in product(*map(range, sizes.values()))]


@given(exprs=st.lists(sums, min_size=1, max_size=3), sizes=extents)
def test_determined_variables_have_one_value_for_each_result(
    exprs: list[Expr], sizes: dict[Var, int]
) -> None:
    forms = [normal(expr, sizes) for expr in exprs]
    found = determined(forms, sizes)
    seen: dict[tuple[int, ...], dict[Var, int]] = {}
    for env in points(sizes):
        key = tuple(form_value(form, env) for form in forms)
        first = seen.setdefault(key, env)
        assert all(first[var] == env[var] for var in found)


written = Acceptance()


@written.at_least(0.3)
@given(expr=sums, sizes=extents, keep_units=st.booleans())
def test_an_iterator_form_has_the_value_of_the_expression(
    expr: Expr, sizes: dict[Var, int], keep_units: bool
) -> None:
    form = in_iter_form([expr], sizes, {}, keep_units=keep_units)
    if written.count(form is not None) and form is not None:
        assert all(value(form[0], env) == value(expr, env) for env in points(sizes))


boxes = Acceptance()


@boxes.at_least(0.01)
@given(exprs=st.lists(sums, min_size=1, max_size=2), sizes=extents, data=st.data())
def test_boxes_that_are_reached_are_reached(
    exprs: list[Expr], sizes: dict[Var, int], data: st.DataObject
) -> None:
    forms = [normal(expr, sizes) for expr in exprs]
    guarded = data.draw(st.sampled_from([None, *forms]))
    bound = data.draw(st.integers(1, 12))
    guards = {} if guarded is None else {terms_of(guarded): bound - guarded.const}
    runs = [e for e in points(sizes) if guarded is None or form_value(guarded, e) < bound]
    box = [data.draw(st.integers(1, 9)) for _ in forms]
    used = covering_sources(forms, box, sizes, guards)
    if not boxes.count(used is not None and set(guards) <= used):
        return
    reached = {tuple(form_value(form, env) for form in forms) for env in runs}
    assert set(product(*map(range, box))) <= reached


def test_splits_and_fusions_are_seen_through() -> None:
    i_0, i_1, f = Var("i_0"), Var("i_1"), Var("f")
    whole = BinOp("+", BinOp("*", i_0, number(32)), i_1)
    fused = [BinOp("//", f, number(16)), BinOp("%", f, number(16))]
    resplit = [BinOp("//", whole, number(24)), BinOp("%", whole, number(24))]
    sizes = {i_0: 6, i_1: 32, f: 128}
    for exprs, box, variables in (
        ([whole], [192], {i_0, i_1}),
        (fused, [8, 16], {f}),
        (resplit, [8, 24], {i_0, i_1}),
    ):
        own = {v: n for v, n in sizes.items() if v in variables}
        forms = [normal(expr, own) for expr in exprs]
        assert determined(forms, own) == variables
        assert covering_sources(forms, box, own) is not None
        assert covering_sources(forms, [box[0] + 1, *box[1:]], own) is None


@given(expr=sums, sizes=extents, fixed=st.sets(st.sampled_from(VARS)))
def test_a_span_holds_every_value(expr: Expr, sizes: dict[Var, int], fixed: set[Var]) -> None:
    form = normal(expr, sizes)
    span = span_of(form, fixed, sizes)
    assert span is not None
    named = {n for atom, _ in span.low.terms for n in walk(atom) if isinstance(n, Var)}
    assert named <= fixed
    for env in points(sizes):
        low = form_value(span.low, env)
        assert low <= form_value(form, env) < low + span.extent


@given(a=sums, b=sums, sizes=extents, fixed=st.sets(st.sampled_from(VARS)), size=st.integers(1, 20))
def test_hulls_and_containment_hold(
    a: Expr, b: Expr, sizes: dict[Var, int], fixed: set[Var], size: int
) -> None:
    one, two = (span_of(normal(expr, sizes), fixed, sizes) for expr in (a, b))
    assert one is not None
    assert two is not None
    both = hull(one, two)
    is_inside = contains(one, two, size, sizes)
    for env in points(sizes):
        low, other = form_value(one.low, env), form_value(two.low, env)
        if is_inside:
            inner = {n for n in range(other, other + two.extent) if 0 <= n < size}
            assert inner <= set(range(low, low + one.extent))
        if both is not None:
            start = form_value(both.low, env)
            assert start <= min(low, other)
            assert start + both.extent >= max(low + one.extent, other + two.extent)


@given(extent=st.integers(1, 120), n=st.integers(1, 3), most=st.integers(1, 20), seed=st.integers())
def test_tiles_are_drawn_among_all(extent: int, n: int, most: int, seed: int) -> None:
    tiles = [
        tile
        for tile in product(divisors(extent), repeat=n)
        if math.prod(tile) == extent and (n == 1 or tile[-1] <= most)
    ]
    assert num_tiles(extent, n, most) == len(tiles)
    assert sample_tile(Random(seed), extent, n, most) in tiles
