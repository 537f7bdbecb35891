"""Accesses that never lie in one epoch, against comparing all points of their loops."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.core.nodes import BinOp, Expr, FloatImm, IntImm, Store, Var, make_buffer
from compiler.ir.verify.races.epochs import split_by_epoch
from compiler.ir.verify.races.shared_access import Loop, SharedAccess

K, F, J, BLOCK = Var("k"), Var("f"), Var("j"), Var("blockIdx.x")
EXTENTS = {K: 4, F: 2, J: 3, BLOCK: 2}
BUFFER = make_buffer("S", (8,))


def access(start: int, scales: dict[Var, int]) -> SharedAccess:
    """Return an access in the epoch `start + scale * var + ...`."""
    epoch: Expr = IntImm(start, "int64")
    for var, scale in scales.items():
        epoch = BinOp("+", epoch, BinOp("*", var, IntImm(scale, "int64")))
    loops = tuple(
        Loop(v, extent, "serial", None, n) for n, (v, extent) in enumerate(EXTENTS.items())
    )
    store = Store(BUFFER, (IntImm(0),), FloatImm(0.0))
    return SharedAccess(
        store, BUFFER, store.indices, 0, None, (), loops, {}, frozenset(), epoch, IntImm(0, "int64")
    )


def epochs(start: int, scales: dict[Var, int], block: int) -> set[int]:
    points = product(*(range(EXTENTS[var]) if var is not BLOCK else (block,) for var in scales))
    return {start + sum(map(int.__mul__, scales.values(), point)) for point in points}


@pytest.mark.parametrize(
    ("one", "other", "num_groups"),
    [
        ((66, {K: 528, F: 8}), (82, {K: 528, J: 16}), 2),
        ((66, {K: 528, F: 8}), (74, {K: 528, J: 16}), 1),
        ((0, {K: 4}), (2, {K: 4, F: 1}), 2),
        ((0, {K: 4}), (3, {K: 4, F: 1}), 1),
        ((0, {BLOCK: 4}), (4, {BLOCK: 4}), 2),
        ((0, {K: 3}), (1, {J: 2}), 1),
    ],
)
def test_accesses_are_apart_if_no_two_points_have_one_epoch(
    one: tuple[int, dict[Var, int]], other: tuple[int, dict[Var, int]], num_groups: int
) -> None:
    groups = split_by_epoch([access(*one), access(*other)], {BLOCK})
    assert len(groups) == num_groups


def test_a_third_access_joins_two_groups() -> None:
    apart = [access(0, {}), access(5, {})]
    assert len(split_by_epoch(apart, ())) == 2
    assert len(split_by_epoch([*apart, access(0, {F: 5})], ())) == 1


SCALES = st.dictionaries(st.sampled_from([K, F, J, BLOCK]), st.integers(1, 12), max_size=3)


@given(st.integers(0, 9), SCALES, st.integers(0, 9), SCALES)
def test_accesses_of_different_groups_never_share_an_epoch(
    start: int, scales: dict[Var, int], other: int, other_scales: dict[Var, int]
) -> None:
    groups = split_by_epoch([access(start, scales), access(other, other_scales)], {BLOCK})
    if len(groups) == 2:
        for block in range(EXTENTS[BLOCK]):
            assert not epochs(start, scales, block) & epochs(other, other_scales, block)
