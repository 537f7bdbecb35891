"""Powers: limits as in C, and any floats."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.backends.module import Module
from compiler.driver import build
from tests.unit.compiler.backends.cpu.codegen.operations.accuracy import (
    EXACT,
    SPECIAL,
    calling,
    errors,
)
from tests.unit.compiler.backends.cpu.codegen.programs import run

# What the functions are, in double precision; and how many units in the last place they may be off.


def test_powers_have_the_limits_that_c_gives_them() -> None:
    some = [*SPECIAL, *(-v for v in SPECIAL), math.nan]
    x, y = (
        np.array(v, np.float32) for v in zip(*[(a, b) for a in some for b in some], strict=True)
    )
    exact, bound = EXACT["pow"]
    with np.errstate(all="ignore"):
        expected = exact(x.astype(np.float64), y.astype(np.float64))
        got = run(calling("pow", len(x)), x, y)
    assert errors(got, expected).max() < bound


@lru_cache(maxsize=1)
def _power() -> Module:
    return build(calling("pow", 16), "cpu -num-cores=1")


FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(
    st.lists(st.tuples(FLOATS, st.one_of(FLOATS, st.integers(-40, 40))), min_size=16, max_size=16)
)
def test_powers_of_any_floats_are_correct(pairs: list[tuple[float, float]]) -> None:
    x, y = (np.array(v, np.float32) for v in zip(*pairs, strict=True))
    got = np.empty(16, np.float32)
    _power()(x, y, got)
    exact, bound = EXACT["pow"]
    with np.errstate(all="ignore"):
        assert errors(got, exact(x.astype(np.float64), y.astype(np.float64))).max() < bound
