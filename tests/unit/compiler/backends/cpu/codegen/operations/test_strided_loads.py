"""Lanes that lie a few elements apart, and conditions that hold for all lanes or none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.driver import emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import (
    check_against_evaluation,
    elementwise,
    mark,
    run,
)

RNG = np.random.default_rng(11)


def strided(extent: int, stride: int, dtype: DType) -> PrimFunc:
    """Return `B[i] = A[stride * i]`, where A ends with the last element that is read."""
    A = te.placeholder(((extent - 1) * stride + 1,), dtype, name="A")
    B = te.compute((extent,), lambda i: A[i * stride], name="B")
    return mark(te.create_prim_func([A, B]), i="vectorized")


@pytest.mark.parametrize(
    ("extent", "stride", "dtype"),
    list(product((1, 2, 7, 8, 45), (2, 3, 4, 5), ("float32", "float64"))),
)
def test_every_stride_and_tail(extent: int, stride: int, dtype: DType) -> None:
    check_against_evaluation(strided(extent, stride, dtype))


def test_small_strides_need_no_gather() -> None:
    texts = [emit(strided(64, s, "float32"), level(3)).text for s in (2, 4, 5)]
    assert ["gather" in text for text in texts] == [False, False, True]


PICKED: dict[str, Callable[[Any], Any]] = {
    "the last first": lambda j: 7 - j,
    "each twice": lambda j: j // 2,
    "two halves exchanged": lambda j: (j + 4) % 8,
    "pairs exchanged": lambda j: j // 2 * 2 + (j + 1) % 2,
    "every third, modulo": lambda j: j * 3 % 8,
    "the first alone": lambda j: j // 8,
}


def picked(pick: Callable[[Any], Any], dtype: DType) -> PrimFunc:
    """Return `B[i, j] = A[i, pick(j)]`, where A has no element that is not read."""
    last: int = max(map(pick, range(8)))
    A = te.placeholder((5, last + 1), dtype, name="A")
    B = te.compute((5, 8), lambda i, j: A[i, pick(j)], name="B")
    return mark(te.create_prim_func([A, B]), j="vectorized")


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16", "float64"])
@pytest.mark.parametrize("pick", PICKED.values(), ids=PICKED.keys())
def test_lanes_at_known_places_are_one_load_and_a_shuffle(
    pick: Callable[[Any], Any], dtype: DType
) -> None:
    func = picked(pick, dtype)
    check_against_evaluation(func)
    assert "gather" not in emit(func, level(3)).text


def test_lanes_that_lie_far_apart_are_gathered() -> None:
    A = te.placeholder((5, 128), "float32", name="A")
    B = te.compute((5, 8), lambda i, j: A[i, (j + 4) % 8 * 16], name="B")
    func = mark(te.create_prim_func([A, B]), j="vectorized")
    check_against_evaluation(func)
    assert "gather" in emit(func, level(3)).text


@pytest.mark.parametrize(("stride", "size"), list(product((2, 3, 4), (29, 32, 45, 57))))
def test_what_a_mask_leaves_out_is_not_read(stride: int, size: int) -> None:
    """A[0] and A[-1] are NaN: they lie just outside of what the conditions let through."""
    count = size // stride + 2

    def element(i: te.Value) -> te.Value:
        place = i * stride - 1
        return te.if_then_else(te.all(place >= 1, place < size - 1), A[place], -1.0)

    A = te.placeholder((size,), "float32", name="A")
    B = te.compute((count,), element, name="B")
    func = mark(te.create_prim_func([A, B]), i="vectorized")
    given = RNG.standard_normal(size).astype(np.float32)
    given[0] = given[-1] = np.nan
    places = np.arange(count) * stride - 1
    inside = (places >= 1) & (places < size - 1)
    expected = np.where(inside, given[np.clip(places, 0, size - 1)], np.float32(-1))
    np.testing.assert_array_equal(run(func, given), expected)


def test_a_condition_that_all_lanes_meet_is_no_mask() -> None:
    def padded(A: Any, i: te.Value) -> te.Value:
        return te.if_then_else(te.all(i >= 0, i < 64), A[i], 0.0)

    text = emit(mark(elementwise(64, padded), i="vectorized"), level(3)).text
    assert "masked" not in text


def test_only_the_border_of_a_padding_is_masked() -> None:
    A = te.placeholder((32,), "float32", name="A")
    B = te.compute(
        (34,), lambda i: te.if_then_else(te.all(i >= 1, i < 33), A[i - 1], 0.0), name="B"
    )
    func = mark(te.create_prim_func([A, B]), i="vectorized")
    text = emit(func, level(3)).text
    # 34 elements are four vectors and one of two: the first and the last cross the border.
    assert text.count("call <8 x float> @llvm.masked.load") == 1
    assert text.count("call <2 x float> @llvm.masked.load") == 1
    check_against_evaluation(func)


def test_fused_loops_over_rows_that_follow_one_another_are_one_row() -> None:
    A = te.placeholder((6, 10), "float32", name="A")
    B = te.compute((6, 10), lambda y, x: A[y, x] + 1.0, name="B")
    schedule = Schedule(te.create_prim_func([A, B]))
    schedule.vectorize(schedule.fuse(*schedule.get_loops(schedule.get_block("B"))))
    text = emit(schedule.func, level(3)).text
    assert "gather" not in text
    assert "scatter" not in text
    check_against_evaluation(schedule.func)
