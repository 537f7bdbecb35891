"""Which accesses to one element agree on a thread, against comparing all pairs of iterations."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.analysis.dependence import Touch, agree_on, touches_of
from compiler.ir.core.nodes import (
    BinOp,
    Compare,
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

THREAD, OTHER, LOOP, FIXED, SHARED = Var("tx"), Var("ty"), Var("k"), Var("n"), Var("bx")
EXTENTS = {THREAD: 12, OTHER: 4, LOOP: 3}
NAMES = {THREAD: "x", OTHER: "y"}


def part(var: Expr, low: int = 1, extent: int | None = None, scale: int = 1) -> Expr:
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


def below(expr: Expr, bound: int) -> Compare:
    return Compare("<", expr, IntImm(bound))


def touch(indices: tuple[Expr, ...], *conditions: Compare) -> Touch:
    buffer = make_buffer("S", (1024,) * len(indices), "float32")
    access = Touch(buffer, indices, True, EXTENTS, NAMES, conditions=conditions)
    return access.sharing({SHARED: 4})


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


def holds(condition: Expr, env: dict[Var, int]) -> bool:
    assert isinstance(condition, Compare)
    return value(condition.lhs, env) < value(condition.rhs, env)


def surely_agree(one: Touch, other: Touch, var: Var) -> bool:
    """Compare all iterations of both accesses, under one value of what is fixed."""
    points = [dict(zip(EXTENTS, p, strict=True)) for p in product(*map(range, EXTENTS.values()))]
    for fixed, shared in ((0, 0), (3, 1), (0, 3)):
        values: dict[tuple[int, ...], set[int]] = {}
        for access in (one, other):
            for point in points:
                env = {**point, FIXED: fixed, SHARED: shared}
                if not all(holds(condition, env) for condition in access.conditions):
                    continue
                element = tuple(value(index, env) for index in access.indices)
                values.setdefault(element, set()).add(env[var])
        if any(len(threads) > 1 for threads in values.values()):
            return False
    return True


FUSED = total(part(THREAD, scale=4), OTHER)
WITH_SHARED = total(part(SHARED, scale=48), FUSED)
OVERLAPPING = total(part(THREAD, scale=2), OTHER)


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
        ((total(THREAD, part(SHARED, 2, scale=4)),), {"x"}),
        ((part(FUSED, 8), part(FUSED, 1, 8)), {"x", "y"}),
        ((part(FUSED, 8), part(FUSED, 1, 4)), {"y"}),
        ((part(WITH_SHARED, 8), part(WITH_SHARED, 1, 8)), {"x", "y"}),
        ((part(OVERLAPPING, 8), part(OVERLAPPING, 1, 8)), set()),
        # (tx * 4 + k) // 8 and k, which is (tx * 4 + k) % 4, lack a part; % 8 // 4 has it.
        ((part(total(part(THREAD, scale=4), LOOP), 8), LOOP), set()),
        (
            (
                part(total(part(THREAD, scale=4), LOOP), 8),
                part(part(total(part(THREAD, scale=4), LOOP), 1, 8), 4),
                LOOP,
            ),
            {"x"},
        ),
    ],
)
def test_an_access_agrees_with_itself_on_what_its_indices_determine(
    indices: tuple[Expr, ...], expected: set[str]
) -> None:
    access = touch(indices)
    for name, var in (("x", THREAD), ("y", OTHER)):
        assert agree_on([access], [name]) == (name in expected)
        assert surely_agree(access, access, var) or name not in expected


@pytest.mark.parametrize("condition", [below(FUSED, 32), below(THREAD, 8)])
def test_a_condition_limits_what_the_parts_of_an_index_must_determine(condition: Compare) -> None:
    indices = (part(FUSED, 8, 4), part(FUSED, 1, 8))
    if condition == below(THREAD, 8):
        indices = (total(part(OTHER, scale=8), THREAD), IntImm(0))
    assert not agree_on([touch(indices)], ["x"])
    access = touch(indices, condition)
    assert agree_on([access], ["x", "y"])
    assert surely_agree(access, access, THREAD)
    assert surely_agree(access, access, OTHER)
    # The other access, without the condition, may be by another thread.
    assert not agree_on([access, touch(indices)], ["x"])


VARS = st.sampled_from([THREAD, OTHER, LOOP, FIXED, SHARED])


def parts_of(sources: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.builds(
        part,
        sources,
        st.sampled_from([1, 1, 2, 4]),
        st.sampled_from([None, None, 2, 4]),
        st.sampled_from([1, 3, 4, 12, 16]),
    )


def sums_of(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.lists(parts, min_size=1, max_size=3).map(lambda some: total(*some))


SUMS = sums_of(parts_of(VARS))
INDICES = st.one_of(SUMS, sums_of(parts_of(st.one_of(VARS, SUMS, st.just(FUSED)))))
CONDITIONS = st.lists(st.builds(below, INDICES, st.sampled_from([2, 8, 24])), max_size=1)
TOUCHES = st.builds(
    lambda indices, conditions: touch(indices, *conditions),
    st.tuples(INDICES, INDICES),
    CONDITIONS,
)


@given(one=TOUCHES, other=TOUCHES, same=st.booleans())
def test_what_accesses_agree_on_is_the_same_in_all_iterations_that_meet(
    one: Touch, other: Touch, same: bool
) -> None:
    other = one if same else other
    for name, var in (("x", THREAD), ("y", OTHER)):
        if agree_on((one, other), [name]):
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
