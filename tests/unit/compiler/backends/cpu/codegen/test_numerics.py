"""What docs/numerics.md says of NaN, infinity, subnormal numbers, and conversions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from compiler import te
from compiler.backends.module import Module
from compiler.driver import build
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    LoopKind,
)
from compiler.ir.core.program import PrimFunc
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, mark, run

KINDS: list[LoopKind] = ["serial", "vectorized"]
FLOATS: list[DType] = ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"]
INTEGERS: list[DType] = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-40, -3e-39, 6e-8, np.inf, -np.inf, np.nan, 65504.0]
LANES = 16

Body = Callable[[te.Value, te.Value], te.Value]


def pairwise(size: int, dtype: DType, body: Body, out: DType | None = None) -> PrimFunc:
    """Return `C[i] = body(A[i], B[i])`."""
    A, B = te.placeholder((size,), dtype, name="A"), te.placeholder((size,), dtype, name="B")

    def element(i: te.Value) -> te.Value:
        value = body(A[i], B[i])
        return value if out is None else te.cast(out, value)

    return te.create_prim_func([A, B, te.compute((size,), element, name="C")])


def pairs(dtype: DType) -> tuple[NDArray[Any], NDArray[Any]]:
    x, y = np.meshgrid(np.array(SPECIAL).astype(dtype), np.array(SPECIAL).astype(dtype))
    return x.ravel(), y.ravel()


def _check_equal(got: NDArray[Any], expected: NDArray[Any]) -> None:
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons_with_nan_are_false_but_for_unequal(
    name: str, dtype: DType, kind: LoopKind
) -> None:
    compare = getattr(operator, name)
    x, y = pairs(dtype)
    got = run(mark(pairwise(len(x), dtype, compare, "bool"), i=kind), x, y)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, compare(x, y))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_greater_and_the_lesser_keep_nan(name: str, dtype: DType, kind: LoopKind) -> None:
    function, numpy = getattr(te, name), {"max": np.maximum, "min": np.minimum}[name]
    x, y = pairs(dtype)
    got = run(mark(pairwise(len(x), dtype, function), i=kind), x, y)
    literal = pairwise(len(x), dtype, lambda a, _: function(a, te.const(1.0, dtype)))
    with_literal = run(mark(literal, i=kind), x, y)
    with np.errstate(invalid="ignore"):
        _check_equal(got, numpy(x, y))
        _check_equal(with_literal, numpy(x, x.dtype.type(1)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
def test_arithmetic_keeps_subnormal_numbers_and_has_the_usual_limits(
    name: str, dtype: DType, kind: LoopKind
) -> None:
    function = getattr(operator, name)
    x, y = pairs(dtype)
    got = run(mark(pairwise(len(x), dtype, function), i=kind), x, y)
    with np.errstate(all="ignore"):
        expected = function(x, y)
    np.testing.assert_array_equal(got, expected)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_lose_their_fraction_and_what_is_out_of_range_harms_no_other(
    source: DType, target: DType, kind: LoopKind
) -> None:
    limits = np.iinfo(target)
    inside = [0.0, -0.0, 0.99, 1.5, 100.7, float(min(limits.max, 60000) // 2)]
    inside += [-0.99, -1.5, -100.7] if limits.min else [-0.99]
    x = np.array(inside).astype(source)
    x = x[(x.astype(np.float64) > limits.min - 1.0) & (x.astype(np.float64) < limits.max + 1.0)]
    outside = np.array([np.nan, np.inf, -np.inf, 60000.0, -60000.0]).astype(source)
    mixed = np.concatenate([x, outside, x])
    func = mark(pairwise(len(mixed), source, lambda a, _: te.cast(target, a)), i=kind)
    got = run(func, mixed, mixed)
    expected = np.trunc(x.astype(np.float64)).astype(target)
    np.testing.assert_array_equal(got[: len(x)], expected)
    np.testing.assert_array_equal(got[-len(x) :], expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_whatever_is_not_zero_is_true(dtype: DType) -> None:
    x, y = pairs(dtype)
    got = run(pairwise(len(x), dtype, lambda a, _: te.cast("bool", a)), x, y)
    np.testing.assert_array_equal(got, x != 0)


@lru_cache(maxsize=64)
def _conversion(source: DType, target: DType) -> Module:
    func = pairwise(LANES, source, lambda a, _: te.cast(target, a))
    return build(mark(func, i="vectorized"), ONE_CORE)


@given(
    st.sampled_from(INTEGERS),
    st.sampled_from([*INTEGERS, *FLOATS]),
    st.lists(st.integers(-(2**63), 2**64 - 1), min_size=LANES, max_size=LANES),
)
def test_integers_wrap_in_others_and_become_the_nearest_float(
    source: DType, target: DType, numbers: list[int]
) -> None:
    x = (np.array(numbers, object) % 2**64).astype(np.uint64).astype(source)
    got = np.empty(LANES, target)
    _conversion(source, target)(x, x, got)
    with np.errstate(over="ignore"):
        expected = x.astype(target) if target in INTEGERS else _nearest(x, target)
    if target in INTEGERS:
        np.testing.assert_array_equal(got, expected)
    else:
        _check_equal(got, expected)


def _nearest(x: NDArray[Any], target: DType) -> NDArray[Any]:
    """Return the nearest floats; narrow ones by way of 32 bits, in which they are computed."""
    wide = x.astype(np.float64 if target == "float64" else np.float32)
    return wide.astype(target)
