"""Quantized operators: rounding, saturation and zero points, against sums by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import loopwright as lw
from compiler import ops
from compiler.ir.core.dtypes import DType
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret

Array = NDArray[Any]


def by_hand(total: int, scale: np.float32, zero_point: int, low: int, high: int) -> int:
    """Return one requantized sum: the product rounded to float32, and that to an integer."""
    product = Fraction(float(np.float32(float(Fraction(total) * Fraction(float(scale))))))
    return min(max(round(product) + zero_point, low), high)


# Sums whose products are halves, or are beyond both ends by one and by far.
TOTALS = [-(2**31), -65793, -259, -257, -255, -5, -3, -1, 0, 1, 3, 5, 253, 255, 257, 511, 2**31 - 1]


@pytest.mark.parametrize(
    ("dtype", "zero_point"), [("int8", 0), ("int8", -128), ("uint8", 0), ("uint8", 255)]
)
def test_ties_are_rounded_to_the_even_integer_and_values_out_of_range_saturate(
    dtype: DType, zero_point: int
) -> None:
    scales = np.array([0.5, -0.5, 1.0, 1 / 3, 1e-9, 1e9], np.float32)
    func = ops.requantize(len(TOTALS), 6, zero_point=zero_point, out_dtype=dtype)
    totals = np.repeat(np.array(TOTALS, np.int32)[:, None], 6, axis=1)
    limits = np.iinfo(dtype)
    # float32 has 24 bits: the sums of 32 bits are rounded before they are scaled.
    ends = int(limits.min), int(limits.max)
    expected = [[by_hand(int(np.float32(t)), s, zero_point, *ends) for s in scales] for t in TOTALS]
    inputs = {"A": totals, "scale": scales}
    np.testing.assert_array_equal(interpret(func, inputs)["requantized"], expected)
    got = np.zeros(totals.shape, dtype)
    lw.build(func)(totals, scales, got)
    np.testing.assert_array_equal(got, expected)
    reference = ops.reference("requantize", len(TOTALS), 6, zero_point=zero_point, out_dtype=dtype)
    np.testing.assert_array_equal(reference(totals, scales), expected)


def test_a_product_that_is_a_tie_in_float32_alone_is_rounded_as_the_tie() -> None:
    """16777213 * 8.9406984e-08 is above 1.5, and 1.5 in float32."""
    rng = np.random.default_rng(0)
    totals = rng.integers(2**23, 2**24, 200_000).astype(np.int32)
    halves = rng.integers(0, 100, totals.shape) + 0.5
    scales = (halves / totals).astype(np.float32)
    product = totals.astype(np.float32) * scales
    exact = totals.astype(np.float64) * scales.astype(np.float64)
    differ = np.flatnonzero(np.rint(product) != np.rint(exact))[:64]
    assert len(differ) == 64
    func = ops.requantize(1, 64)
    inputs = {"A": totals[differ][None], "scale": scales[differ]}
    expected = np.rint(product[differ])[None]
    np.testing.assert_array_equal(interpret(func, inputs)["requantized"], expected)
    np.testing.assert_array_equal(evaluate(func, inputs)["requantized"], expected)
    got = np.zeros((1, 64), np.int8)
    lw.build(func)(*inputs.values(), got)
    np.testing.assert_array_equal(got, expected)


def test_a_zero_point_of_the_input_stands_for_zero() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (5, 40)).astype(np.uint8)
    w = rng.integers(-128, 128, (6, 40)).astype(np.int8)
    scale = rng.uniform(0.001, 0.01, 6).astype(np.float32)
    bias = rng.integers(-1000, 1000, 6).astype(np.int32)
    shifted = a.astype(np.int64) - 131
    total = (shifted[:, None, :] * w.astype(np.int64)).sum(-1) + bias
    expected = np.clip(np.rint(total.astype(np.float32) * scale) + 9, 0, 255)
    func = ops.quantized_dense(5, 6, 40, bias=True, input_zero_point=131, zero_point=9)
    inputs: dict[str, Array] = {"A": a, "W": w, "scale": scale, "bias": bias}
    np.testing.assert_array_equal(interpret(func, inputs)["requantized"], expected)


def test_an_image_is_padded_with_its_zero_point() -> None:
    image = np.full((1, 1, 3, 3), 77, np.uint8)
    weight = np.full((1, 1, 3, 3), -128, np.int8)
    func = ops.quantized_conv2d(1, 1, 3, 3, 1, 3, 1, 1, input_zero_point=77, zero_point=4)
    inputs: dict[str, Array] = {"A": image, "W": weight, "scale": np.ones(1, np.float32)}
    np.testing.assert_array_equal(interpret(func, inputs)["requantized"], np.full(image.shape, 4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ops.requantize(4, zero_point=200), "zero_point is 200: expected -128 to 127"),
        (lambda: ops.requantize(4, dtype="int64"), "type 'int64' is not supported: expected int32"),
        (lambda: ops.requantize(4, out_dtype="int16"), "expected int8 or uint8"),
        (lambda: ops.quantized_dense(4, 4, 8, weight_dtype="int16"), "expected int8 or uint8"),
        (lambda: ops.quantized_dense(4, 4, 8, input_zero_point=-1), "expected 0 to 255"),
        (lambda: ops.quantized_dense(0, 4, 8), "m is 0"),
        (lambda: ops.quantized_dense(4, 4, 8, "int8", reduce_range=True), "expected uint8"),
        (
            lambda: ops.quantized_dense(4, 4, 8, input_zero_point=128, reduce_range=True),
            "input_zero_point is 128: expected 0 to 127",
        ),
    ],
)
def test_arguments_out_of_range_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ops.OperatorError, match=message):
        make()
