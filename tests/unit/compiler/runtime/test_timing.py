"""Statistics of samples."""

from __future__ import annotations

import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.runtime.timing import Timing


@given(st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=20))
def test_statistics_are_those_of_numpy(secs: list[float]) -> None:
    timing = Timing(tuple(secs))
    assert timing.results == timing.secs == tuple(secs)
    assert timing.min == timing.min_secs == min(secs)
    assert timing.max == max(secs)
    assert timing.median == timing.median_secs == statistics.median(secs)
    np.testing.assert_allclose([timing.mean, timing.std], [np.mean(secs), np.std(secs)], atol=1e-9)
