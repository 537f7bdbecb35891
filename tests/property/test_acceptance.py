"""A property test that accepts too few of its cases fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.acceptance import Acceptance

numbers = Acceptance()


@numbers.at_least(0.5)
@given(number=st.integers(0, 99))
def count_below(limit: int, number: int) -> None:
    numbers.count(number < limit)


def test_a_floor_is_required_of_each_run() -> None:
    count_below(100)
    with pytest.raises(AssertionError, match=r"0 of [0-9]+ cases are accepted"):
        count_below(0)
    with pytest.raises(AssertionError, match=r"[0-9]+ of [0-9]+ cases are accepted"):
        count_below(5)
