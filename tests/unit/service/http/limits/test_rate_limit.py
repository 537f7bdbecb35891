"""Buckets of requests under a clock that the test moves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.http.rate_limit import RateLimit


class Clock:
    def __init__(self) -> None:
        self.secs = 1000.0

    def __call__(self) -> float:
        return self.secs


def test_ten_seconds_worth_may_come_at_once() -> None:
    clock = Clock()
    limit = RateLimit(2.0, clock=clock)
    assert [limit.take("a", 1) for _ in range(20)] == [0.0] * 20
    assert limit.take("a", 1) == 0.5
    assert limit.take("b", 1) == 0.0
    clock.secs += 0.5
    assert limit.take("a", 1) == 0.0
    assert limit.take("a", 1) > 0


def test_a_refused_request_takes_nothing() -> None:
    clock = Clock()
    limit = RateLimit(1.0, clock=clock)
    limit.take("a", 10)
    assert [limit.take("a", 5) for _ in range(3)] == [5.0] * 3


def test_a_request_dearer_than_the_bucket_is_let_through_when_it_is_full() -> None:
    clock = Clock()
    limit = RateLimit(1.0, clock=clock)
    assert limit.take("a", 100) == 0.0
    assert limit.take("a", 1) > 0


def test_zero_means_no_limit() -> None:
    limit = RateLimit(0.0)
    assert all(limit.take("a", 10**6) == 0.0 for _ in range(100))


@given(st.lists(st.tuples(st.floats(0, 5), st.integers(1, 20)), min_size=1, max_size=60))
def test_no_window_lets_through_more_than_rate_and_burst(
    requests: list[tuple[float, int]],
) -> None:
    clock = Clock()
    limit = RateLimit(4.0, clock=clock)
    begin, taken = clock.secs, 0
    for pause_secs, cost in requests:
        clock.secs += pause_secs
        taken += cost if limit.take("a", cost) == 0.0 else 0
    assert taken <= 4.0 * (clock.secs - begin + 10.0) + 1e-6
