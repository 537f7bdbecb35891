"""The sizes that are tuned and timed are spread over the ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tuner.shapes.sizes import is_one, middle, spread_sizes, with_divisors


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


def test_sizes_between_the_ends_have_many_divisors() -> None:
    spread = spread_sizes({"M": (1, 512)}, 8)
    assert [of_size["M"] for of_size in with_divisors(spread)] == [1, 2, 6, 12, 36, 84, 240, 512]
    ends = [{"M": 1}, {"M": 509}]
    assert with_divisors(ends) == ends
    # 47 would become 48, which is beyond the range.
    assert with_divisors([{"M": 40}, {"M": 46}, {"M": 47}])[1:] == [{"M": 47}]


@given(low=st.integers(1, 40), width=st.integers(0, 400), number=st.integers(1, 12))
def test_sizes_with_many_divisors_are_in_the_range(low: int, width: int, number: int) -> None:
    spread = spread_sizes({"M": (low, low + width), "N": (1, 8)}, number)
    found = with_divisors(spread)
    assert {low, low + width} >= {found[0]["M"], found[-1]["M"]}
    assert all(low <= of_size["M"] <= low + width and of_size["N"] <= 8 for of_size in found)
    assert len({tuple(of_size.values()) for of_size in found}) == len(found) <= len(spread)
