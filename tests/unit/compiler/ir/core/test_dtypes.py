"""Scalar types against NumPy and ml_dtypes."""

from __future__ import annotations

from typing import get_args

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.core import dtypes
from compiler.ir.core.dtypes import DType

ALL: tuple[DType, ...] = get_args(DType)
INTEGERS = [dtype for dtype in ALL if np.dtype(dtype).kind in "iu"]
FLOATS = [dtype for dtype in ALL if dtype not in INTEGERS and dtype != "bool"]


@pytest.mark.parametrize("dtype", ALL)
def test_sizes_and_kinds_are_those_of_numpy(dtype: DType) -> None:
    plain = np.dtype(dtype)
    assert dtypes.size_bytes(dtype) == plain.itemsize
    assert dtypes.bits(dtype) == 8 * plain.itemsize
    assert dtypes.is_integer(dtype) == (dtype in INTEGERS)
    assert dtypes.is_signed(dtype) == (plain.kind == "i")
    assert dtypes.is_float(dtype) == (dtype in FLOATS)


@given(st.sampled_from(INTEGERS), st.integers(-(2**70), 2**70))
def test_a_conversion_wraps_around(dtype: DType, value: int) -> None:
    held = dtypes.wrapped(value, dtype)
    low, high = dtypes.smallest_and_largest(dtype)
    assert low <= held <= high
    assert (held - value) % 2 ** dtypes.bits(dtype) == 0


@pytest.mark.parametrize("dtype", FLOATS)
def test_limits_of_floats_are_those_of_the_type(dtype: DType) -> None:
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    assert dtypes.smallest_and_largest(dtype) == (float(info.min), float(info.max))
    one = np.ones((), dtype)
    step = np.asarray(dtypes.epsilon(dtype), dtype)
    assert float(one + step) > 1
    assert float(np.asarray(float(one) + dtypes.epsilon(dtype) / 4, dtype)) == 1
