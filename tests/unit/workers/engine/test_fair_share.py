from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.engine.fair_share import REQUEST_SIZE, Standing, alone


def in_flight(num_slots: int, **num_requests: int) -> dict[str, float]:
    """Return how many batches of one request of each owner may be in flight."""
    return {owner: Standing(owner, num_requests).max_in_flight(num_slots) for owner in num_requests}


def busy(limit: float) -> float:
    """Return how many workers a request keeps busy: 16 batches in the time that they take."""
    return REQUEST_SIZE / (REQUEST_SIZE / limit + 0.75)


def test_one_owner_has_two_batches_for_each_worker() -> None:
    assert alone().max_in_flight(3) == 6
    assert in_flight(8, me=4) == {"me": 4}


def test_owners_keep_equal_numbers_of_workers_busy_whatever_number_of_jobs_they_have() -> None:
    limits = in_flight(80, few=10, many=30)
    assert 10 * busy(limits["few"]) == pytest.approx(40)
    assert 30 * busy(limits["many"]) == pytest.approx(40)


def test_what_an_owner_cannot_use_is_left_to_others() -> None:
    limits = in_flight(100, one=1, many=20, more=40)
    assert limits["one"] == REQUEST_SIZE
    left = (100 - busy(REQUEST_SIZE)) / 2
    assert 20 * busy(limits["many"]) == pytest.approx(left)
    assert 40 * busy(limits["more"]) == pytest.approx(left)


@pytest.mark.parametrize("num_slots", [0, 1, 3])
def test_each_request_may_have_one_batch(num_slots: int) -> None:
    assert min(in_flight(num_slots, few=1, many=90).values()) >= 1


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50), min_size=2),
    st.integers(1, 500),
)
def test_parts_are_max_min_fair(num_requests: dict[str, int], num_slots: int) -> None:
    """An oracle that fills all owners at once, in exact steps."""
    left = Fraction(num_slots)
    most = REQUEST_SIZE / Fraction(7, 4)
    demands = {owner: most * num for owner, num in num_requests.items()}
    parts = dict.fromkeys(demands, Fraction(0))
    while left > 0 and (open_owners := [o for o in demands if parts[o] < demands[o]]):
        step = min(left / len(open_owners), *(demands[o] - parts[o] for o in open_owners))
        for owner in open_owners:
            parts[owner] += step
            left -= step
    for owner, limit in in_flight(num_slots, **num_requests).items():
        fair = float(parts[owner]) / num_requests[owner]
        queue = 2 * num_slots / num_requests[owner]
        assert limit == pytest.approx(max(1.0, min(queue, 16 * fair / (16 - 0.75 * fair))))
