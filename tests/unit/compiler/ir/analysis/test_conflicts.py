"""Whether two threads meet in one element, against comparing all pairs of accesses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from compiler.ir.analysis.conflicts import MAX_POINTS, are_disjoint, may_conflict
from compiler.ir.analysis.dependence import Touch, agree_on
from compiler.ir.core.nodes import (
    ArithOp,
    BinOp,
    Compare,
    Expr,
    IntImm,
    Load,
    Ramp,
    Var,
    make_buffer,
)

X, Y, LOOP, STEP, FIXED = Var("tx"), Var("ty"), Var("v"), Var("k"), Var("n")
EXTENTS = {X: 6, Y: 2, LOOP: 3}
NAMES = {X: "x", Y: "y"}
BUFFER = make_buffer("S", (64, 64), "float32", "shared")
PLACES = make_buffer("N", (64,), "int32")
COMPUTE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "^": lambda a, b: a ^ b,
    "<": lambda a, b: int(a < b),
    "==": lambda a, b: int(a == b),
}


def number(value: int) -> IntImm:
    return IntImm(value)


def touch(
    *indices: Expr, extents: Mapping[Var, int] = EXTENTS, conditions: tuple[Expr, ...] = ()
) -> Touch:
    return Touch(BUFFER, indices, True, extents, NAMES, frozenset(), conditions)


def value(expr: Expr, env: Mapping[Var, int]) -> int:
    match expr:
        case Var():
            return env[expr]
        case IntImm(literal):
            return literal
        case BinOp(op, lhs, rhs) | Compare(op, lhs, rhs):
            return COMPUTE[op](value(lhs, env), value(rhs, env))
        case _:
            raise NotImplementedError(expr)


def instances(access: Touch, outer: Mapping[Var, int]) -> Iterator[tuple[object, tuple[int, ...]]]:
    """Yield the element and the thread of each instance of an access."""
    for point in product(*map(range, access.extents.values())):
        env = {**dict(zip(access.extents, point, strict=True)), **outer}
        if not all(value(condition, env) for condition in access.conditions):
            continue
        thread = (env[X], env[Y])
        for lane in range(access.lanes):
            yield (
                tuple(
                    value(i.base, env) + i.stride * lane if isinstance(i, Ramp) else value(i, env)
                    for i in access.indices
                ),
                thread,
            )


def meet(one: Touch, other: Touch, outer: Mapping[Var, int]) -> bool:
    threads: dict[object, set[tuple[int, ...]]] = {}
    for element, thread in instances(one, outer):
        threads.setdefault(element, set()).add(thread)
    return any(
        threads.get(element, set()) - {thread} for element, thread in instances(other, outer)
    )


@st.composite
def exprs(draw: st.DrawFn, variables: tuple[Var, ...]) -> Expr:
    total: Expr = number(draw(st.integers(0, 2)))
    for _ in range(draw(st.integers(1, 3))):
        part: Expr = draw(st.sampled_from(variables))
        for _ in range(draw(st.integers(0, 2))):
            op: ArithOp = draw(st.sampled_from(["//", "%", "*", "^", "+"]))
            part = BinOp(op, part, number(draw(st.sampled_from([2, 3, 4]))))
        total = BinOp("+", total, part)
    return total


@st.composite
def touches(draw: st.DrawFn, variables: tuple[Var, ...] = (X, Y, LOOP)) -> Touch:
    first: Expr = draw(exprs(variables))
    if draw(st.booleans()):
        first = Ramp(first, draw(st.sampled_from([1, 2])), 2)
    second = draw(st.one_of(exprs(variables), st.just(number(0))))
    conditions = []
    if draw(st.booleans()):
        bound = number(draw(st.integers(0, 6)))
        conditions = [Compare("<", draw(exprs(variables)), bound)]
    return touch(first, second, conditions=tuple(conditions))


@given(one=touches(), other=touches())
def test_two_accesses_conflict_if_two_threads_meet(one: Touch, other: Touch) -> None:
    expected = meet(one, other, {})
    event(f"conflict: {expected}, proved: {agree_on((one, other), ['x', 'y'])}")
    assert may_conflict(one, other, ["x", "y"]) == expected
    assert are_disjoint([one, other], ["x", "y"]) == (
        not (expected or meet(one, one, {}) or meet(other, other, {}))
    )


@given(one=touches((X, LOOP, STEP)), other=touches((X, Y, STEP)))
def test_accesses_in_one_iteration_of_a_loop_conflict_if_two_threads_meet_in_one(
    one: Touch, other: Touch
) -> None:
    expected = any(meet(one, other, {STEP: step}) for step in range(4))
    assert may_conflict(one, other, ["x", "y"], {STEP: 4}) == expected


@given(one=touches((X, Y, LOOP, FIXED)), other=touches((X, Y, LOOP, FIXED)))
def test_no_conflict_of_a_variable_with_any_value_is_missed(one: Touch, other: Touch) -> None:
    expected = any(meet(one, other, {FIXED: fixed}) for fixed in (0, 1))
    assert may_conflict(one, other, ["x", "y"]) or not expected


def scaled(var: Var, factor: int) -> Expr:
    return BinOp("*", var, number(factor))


def test_what_is_added_to_both_accesses_does_not_matter() -> None:
    moved = BinOp("+", scaled(FIXED, 48), BinOp("+", scaled(X, 3), LOOP))
    other = BinOp("+", scaled(FIXED, 48), scaled(X, 3))
    assert not may_conflict(touch(moved, Y), touch(other, Y), ["x", "y"])
    further = BinOp("+", scaled(FIXED, 47), scaled(X, 3))
    assert may_conflict(touch(moved, Y), touch(further, Y), ["x", "y"])


def test_an_index_out_of_a_buffer_may_be_any() -> None:
    unknown = Load(PLACES, (X,))
    assert may_conflict(touch(unknown, number(0)), touch(X, number(0)), ["x"])
    swapped = BinOp("^", X, number(1))
    assert not may_conflict(touch(unknown, swapped), touch(Y, swapped), ["x"])


def test_an_access_that_is_outside_of_the_loop_over_an_axis_is_of_all_its_threads() -> None:
    outside = touch(X, number(0), extents={X: 6})
    assert may_conflict(outside, touch(X, Y), ["x", "y"])
    assert not may_conflict(outside, touch(X, BinOp("+", Y, number(1))), ["x", "y"])


@pytest.mark.parametrize("threads", [1 << 10, 1 << 19])
def test_beyond_the_limit_only_what_is_proved_is_no_conflict(threads: int) -> None:
    extents = {X: threads, LOOP: 8}
    swapped = touch(BinOp("^", BinOp("+", scaled(X, 8), LOOP), number(1)), extents=extents)
    assert may_conflict(swapped, swapped, ["x"]) == (threads * 8 * 2 > MAX_POINTS)
    plain = touch(BinOp("+", scaled(X, 8), LOOP), extents=extents)
    assert not may_conflict(plain, plain, ["x"])


def test_different_versions_are_disjoint_however_many_points_they_have() -> None:
    extents = {X: 1 << 19, LOOP: 8}
    swapped = BinOp("^", BinOp("+", scaled(X, 8), LOOP), number(1))
    first = touch(number(0), swapped, extents=extents)
    assert not may_conflict(first, touch(number(1), swapped, extents=extents), ["x"])
    assert may_conflict(first, touch(number(0), swapped, extents=extents), ["x"])


def test_a_condition_on_another_loop_counts() -> None:
    # Threads 0 and 3 share an element, but the condition excludes one of them in each iteration.
    extents = {X: 6, LOOP: 2}
    is_half = Compare("==", BinOp("//", X, number(3)), LOOP)
    access = touch(BinOp("%", X, number(3)), LOOP, extents=extents, conditions=(is_half,))
    assert not may_conflict(access, access, ["x"])
    late = Compare("<", BinOp("+", X, scaled(STEP, 3)), number(3))
    folded = touch(BinOp("%", X, number(3)), extents={X: 6, STEP: 2}, conditions=(late,))
    assert not may_conflict(folded, folded, ["x"])
