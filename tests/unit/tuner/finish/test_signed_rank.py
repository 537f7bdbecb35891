from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from tuner.finish.signed_rank import median_interval, p_slower, shift_interval

DIFFERENCES = st.lists(st.floats(-4, 4).map(lambda x: round(x, 3)), min_size=1, max_size=9)


def mean_ranks(sizes: list[float]) -> list[float]:
    return [sum(b < a for b in sizes) + (sum(b == a for b in sizes) + 1) / 2 for a in sizes]


@given(DIFFERENCES)
def test_the_chance_is_that_of_all_signs(differences: list[float]) -> None:
    """Every way to give the differences signs is tried."""
    sizes = [abs(d) for d in differences]
    ranks = [r if s else 0.0 for r, s in zip(mean_ranks(sizes), sizes, strict=True)]
    found = sum(r for r, d in zip(ranks, differences, strict=True) if d > 0)
    sums = [
        sum(r for r, up in zip(ranks, ups, strict=True) if up)
        for ups in product((False, True), repeat=len(ranks))
    ]
    expected = np.mean([total >= found - 1e-9 for total in sums])
    assert p_slower(differences) == pytest.approx(expected)


def test_another_implementation_agrees() -> None:
    differences = np.random.default_rng(0).normal(0.3, 1.0, 25)
    expected = wilcoxon(differences, alternative="greater", method="exact").pvalue
    assert p_slower(differences.tolist()) == pytest.approx(expected)


def test_no_differences_say_nothing() -> None:
    assert p_slower([]) == 1.0
    assert p_slower([0.0] * 12) == 1.0


@given(
    st.lists(st.integers(-4000, 4000), min_size=8, max_size=14, unique=True), st.integers(-999, 999)
)
def test_the_interval_holds_the_shifts_that_the_test_does_not_reject(
    thousandths: list[int], thousandth: int
) -> None:
    differences, shift = [n / 1000 for n in thousandths], thousandth / 1000
    low, high = shift_interval(differences, 0.05)
    means = [(a + b) / 2 for a, b in combinations(differences, 2)] + differences
    if min(abs(shift - mean) for mean in means) < 1e-6:
        return  # at its bounds a test with ties decides
    moved = [d - shift for d in differences]
    is_rejected = min(p_slower(moved), p_slower([-d for d in moved])) <= 0.025
    assert is_rejected == (not low < shift < high)


def test_few_differences_leave_the_interval_open() -> None:
    assert shift_interval([1.0, 2.0, 3.0], 0.05) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("num", "low", "high"), [(1, 0, 0), (5, 0, 4), (6, 0, 5), (10, 1, 8), (20, 5, 14), (36, 11, 24)]
)
def test_the_interval_of_a_median_is_that_of_the_tables(num: int, low: int, high: int) -> None:
    """As in D. B. Owen, Handbook of Statistical Tables, for 95%."""
    assert median_interval([float(n) for n in range(num)]) == (low, high)
