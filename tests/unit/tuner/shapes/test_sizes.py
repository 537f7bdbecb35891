"""The sizes that are tuned and timed are spread over the ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tuner.shapes.sizes import is_one, middle, spread_sizes


def test_one_extent_is_a_geometric_series_with_both_ends() -> None:
    sizes = [size["M"] for size in spread_sizes({"M": (1, 512)}, 8)]
    assert sizes == [1, 2, 6, 14, 35, 86, 210, 512]


@given(st.integers(1, 600), st.integers(0, 600), st.integers(2, 24))
def test_sizes_of_one_extent_are_different_and_in_the_range(
    low: int, width: int, number: int
) -> None:
    high = low + width
    sizes = [size["M"] for size in spread_sizes({"M": (low, high)}, number)]
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (low, high)
    assert len(sizes) <= number
    assert len(sizes) >= min(number, width + 1) - 1


@given(st.integers(2, 24))
def test_sizes_of_several_extents_have_both_corners(number: int) -> None:
    ranges = {"M": (1, 512), "N": (64, 4096)}
    sizes = spread_sizes(ranges, number)
    assert {"M": 1, "N": 64} in sizes
    assert {"M": 512, "N": 4096} in sizes
    assert len({tuple(size.values()) for size in sizes}) == len(sizes) == number
    assert all(low <= size[name] <= high for size in sizes for name, (low, high) in ranges.items())


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_middle_separates(low: int, step: int) -> None:
    assert low <= middle(low, low + step) < low + step


def test_a_single_row() -> None:
    assert is_one({"M": 1})
    assert not is_one({"M": 1, "N": 2})
