"""Require a minimum share of accepted cases: a test that refuses all cases checks nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import sqrt
from typing import ParamSpec

P = ParamSpec("P")


class Acceptance:
    """Counts the accepted cases of a property test, and requires a minimum share.

    Hypothesis draws different cases in each run, and few in most tests. So a floor is well below
    the usual share, and a run fails only if chance does not explain that its share is smaller.

        tiles = Acceptance()

        @tiles.at_least(0.2)
        @given(...)
        def test_tiles(...) -> None:
            if not tiles.count(is_accepted):
                return
    """

    def __init__(self) -> None:
        self.num_accepted = 0
        self.num_cases = 0

    def count(self, is_accepted: bool) -> bool:
        """Count a case, and return whether it was accepted."""
        self.num_cases += 1
        self.num_accepted += is_accepted
        return is_accepted

    def at_least(self, floor: float) -> Callable[[Callable[P, None]], Callable[P, None]]:
        """Fail a test whose share of accepted cases is clearly smaller: by three deviations."""

        def decorate(test: Callable[P, None]) -> Callable[P, None]:
            @wraps(test)
            def counted(*args: P.args, **kwargs: P.kwargs) -> None:
                self.num_accepted = self.num_cases = 0
                test(*args, **kwargs)
                share = f"{self.num_accepted} of {self.num_cases} cases are accepted"
                expected = floor * self.num_cases
                deviation = sqrt(expected * (1 - floor))
                assert self.num_accepted >= max(1, expected - 3 * deviation), share

            return counted

        return decorate
