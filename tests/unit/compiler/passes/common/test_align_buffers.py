"""Alignments of buffers: the smallest extents that have the steps."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from compiler.passes.common.align_buffers import aligned


def step(extents: tuple[int, ...], axis: int) -> int:
    """Return how many elements lie between neighbours along an axis."""
    return prod(extents[axis + 1 :])


def test_by_hand() -> None:
    assert aligned((8, 30), {0: (16, 0)}) == (8, 32)
    assert aligned((8, 32), {0: (32, 1)}) == (8, 33)  # so that columns lie in different banks
    assert aligned((8, 30), {}) == (8, 30)
    assert aligned((4, 5, 6), {1: (4, 0), 0: (16, 0)}) == (4, 6, 8)


@given(
    st.lists(st.integers(1, 12), min_size=2, max_size=3).map(tuple),
    st.integers(1, 16),
    st.integers(0, 3),
)
def test_steps_fit_if_some_length_makes_them(
    extents: tuple[int, ...], factor: int, offset: int
) -> None:
    new = aligned(extents, {0: (factor, offset)})
    assert new[0] == extents[0]
    assert new[2:] == extents[2:]
    inner = step(extents, 1)
    fitting = [
        n for n in range(extents[1], extents[1] + factor) if (n * inner - offset) % factor == 0
    ]
    assert new[1] == (fitting[0] if fitting else extents[1])
