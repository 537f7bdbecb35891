"""Which accesses to one element agree on a thread, against comparing all pairs of iterations."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.analysis.dependence import Touch, agree_on, touches_of
from compiler.ir.core.nodes import (
    BinOp,
    Evaluate,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Load,
    Store,
    Var,
    make_buffer,
    seq,
)

THREAD, OTHER, LOOP, FIXED = Var("tx"), Var("ty"), Var("k"), Var("n")
EXTENTS = {THREAD: 12, OTHER: 4, LOOP: 3}
NAMES = {THREAD: "x", OTHER: "y"}


def part(var: Var, low: int = 1, extent: int | None = None, scale: int = 1) -> Expr:
    """Return `scale * (var // low % extent)`."""
    expr: Expr = BinOp("//", var, IntImm(low)) if low > 1 else var
    if extent is not None:
        expr = BinOp("%", expr, IntImm(extent))
    return BinOp("*", expr, IntImm(scale)) if scale > 1 else expr


def total(*parts: Expr) -> Expr:
    expr = parts[0]
    for other in parts[1:]:
        expr = BinOp("+", expr, other)
    return expr


def touch(indices: tuple[Expr, ...]) -> Touch:
    buffer = make_buffer("S", (1024,) * len(indices), "float32")
    return Touch(buffer, indices, True, EXTENTS, NAMES)


def value(expr: Expr, env: dict[Var, int]) -> int:
    match expr:
        case Var():
            return env[expr]
        case IntImm(literal):
            return literal
        case BinOp(op, lhs, rhs):
            a, b = value(lhs, env), value(rhs, env)
            return {"+": a + b, "*": a * b, "//": a // (b or 1), "%": a % (b or 1)}[op]
        case _:
            raise NotImplementedError(expr)


def surely_agree(one: tuple[Expr, ...], other: tuple[Expr, ...], var: Var) -> bool:
    """Compare all iterations of both accesses, under one value of what is fixed."""
    points = [dict(zip(EXTENTS, p, strict=True)) for p in product(*map(range, EXTENTS.values()))]
    for fixed in (0, 3):
        values: dict[tuple[int, ...], set[int]] = {}
        for indices in (one, other):
            for point in points:
                env = {**point, FIXED: fixed}
                element = tuple(value(index, env) for index in indices)
                values.setdefault(element, set()).add(env[var])
        if any(len(threads) > 1 for threads in values.values()):
            return False
    return True


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ((total(part(OTHER, scale=12), THREAD),), {"x", "y"}),
        ((total(part(OTHER, scale=8), THREAD),), set()),
        ((total(part(THREAD, scale=3), LOOP),), {"x"}),
        ((total(part(THREAD, scale=2), LOOP),), set()),
        ((part(THREAD, 4), part(THREAD, 1, 4)), {"x"}),
        ((part(THREAD, 4), total(part(THREAD, 1, 4, scale=3), LOOP)), {"x"}),
        ((part(THREAD, 4), part(THREAD, 1, 3)), set()),
        ((part(THREAD, 4), OTHER), {"y"}),
        ((THREAD, part(THREAD, 5)), {"x"}),
        ((total(THREAD, part(FIXED, scale=2)),), {"x"}),
    ],
)
def test_an_access_agrees_with_itself_on_what_its_indices_determine(
    indices: tuple[Expr, ...], expected: set[str]
) -> None:
    access = touch(indices)
    for name, var in (("x", THREAD), ("y", OTHER)):
        assert agree_on([access], [name]) == (name in expected)
        assert surely_agree(indices, indices, var) or name not in expected


VARS = st.sampled_from([THREAD, OTHER, LOOP, FIXED])
PARTS = st.builds(
    part,
    VARS,
    st.sampled_from([1, 1, 2, 4]),
    st.sampled_from([None, None, 2, 4]),
    st.sampled_from([1, 3, 4, 12, 16]),
)
INDICES = st.lists(PARTS, min_size=1, max_size=3).map(lambda parts: total(*parts))


@given(one=st.tuples(INDICES, INDICES), other=st.tuples(INDICES, INDICES), same=st.booleans())
def test_what_accesses_agree_on_is_the_same_in_all_iterations_that_meet(
    one: tuple[Expr, ...], other: tuple[Expr, ...], same: bool
) -> None:
    other = one if same else other
    for name, var in (("x", THREAD), ("y", OTHER)):
        if agree_on((touch(one), touch(other)), [name]):
            assert surely_agree(one, other, var)


def test_a_name_for_a_value_may_differ_between_two_iterations() -> None:
    buffer, places = make_buffer("S", (1024,), "float32"), make_buffer("N", (12,), "int32")
    name = Var("x")
    index = total(part(THREAD, scale=8), name)
    body = seq(Store(buffer, (index,), FloatImm(0.0)), Evaluate(Load(buffer, (index,))))
    outside = touches_of(body, EXTENTS, NAMES)
    assert all(agree_on((one, other), ["x"]) for one, other in product(outside, repeat=2))
    for touches in (
        touches_of(Let(name, Load(places, (THREAD,)), body), EXTENTS, NAMES),
        touches_of(body, EXTENTS, NAMES, varying={name}),
    ):
        in_buffer = [touch for touch in touches if touch.buffer == buffer]
        assert len(in_buffer) == 2
        assert not any(agree_on((one, other), ["x"]) for one, other in product(in_buffer, repeat=2))
