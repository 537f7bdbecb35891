"""How many calls a sample has, and that each is made."""

from __future__ import annotations

import pytest

from compiler.runtime.time_calls import calls_per_sample, time_calls


@pytest.mark.parametrize("call_secs", [1e-9, 3e-7, 1e-5, 1.0])
def test_a_sample_has_as_many_calls_as_it_needs(call_secs: float) -> None:
    def clock(_run: object, _threads: int, calls: int) -> float:
        assert calls >= 1
        return call_secs

    min_sample_secs = 50e-6
    calls = calls_per_sample(lambda: None, 1, min_sample_secs, clock)
    assert calls * call_secs >= min_sample_secs
    assert calls == 1 or calls * call_secs < 20 * min_sample_secs


def test_a_clock_that_stands_still_ends_the_search() -> None:
    assert calls_per_sample(lambda: None, 1, 1.0, lambda *_: 0.0) == 1 << 20


def test_each_call_is_made() -> None:
    seen: list[int] = []
    assert time_calls(lambda: seen.append(1), 1, 7) > 0
    assert len(seen) == 7
