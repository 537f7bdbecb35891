from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import find_operator
from tests.graph_operators import assert_computes_its_reference, computed, onnx_results

TYPES = ["int8", "uint8", "int16", "uint16"]


def _numbers(*shape: int) -> Array:
    # Multiples of 1/4: divisions by powers of two are exact, with many halves.
    values = np.random.default_rng(0).integers(-900, 900, shape) / 4
    return np.asarray(values, np.float32)


def _parameters(shape: tuple[int, ...], dtype: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    scales = np.asarray(2.0 ** rng.integers(-3, 3, shape), np.float32)
    limits = np.iinfo(dtype)
    return scales, np.asarray(rng.integers(limits.min, limits.max, shape), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("shape", "attrs"),
    [((), {}), ((1,), {}), ((4,), {"axis": 1}), ((3, 2, 5), {"axis": 1, "block_size": 2})],
)
def test_values_become_integers_and_back_as_onnx_defines(
    dtype: str, shape: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    x, (scale, zero_point) = _numbers(3, 4, 5), _parameters(shape, dtype)
    arrays = [x, scale, zero_point]
    [integers] = assert_computes_its_reference("quantize", arrays, out_dtype=dtype, **attrs)
    np.testing.assert_array_equal(integers, onnx_results("QuantizeLinear", arrays, **attrs)[0])
    arrays = [integers, scale, zero_point]
    [floats] = assert_computes_its_reference("dequantize", arrays, **attrs)
    np.testing.assert_array_equal(floats, onnx_results("DequantizeLinear", arrays, **attrs)[0])


def test_sums_in_32_bits_become_floats() -> None:
    x = np.random.default_rng(2).integers(-(2**31), 2**31, (50,)).astype(np.int32)
    assert_computes_its_reference("dequantize", [x, np.full((), 0.3, np.float32)])


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_values_become_narrow_floats_and_back(dtype: Any) -> None:
    x, name = _numbers(64) * 1000, np.dtype(dtype).name
    scale = np.full((), 2, np.float32)
    [narrow] = computed("quantize", [x, scale], out_dtype=name)
    limit = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}[name]
    np.testing.assert_array_equal(narrow, np.clip(x / 2, -limit, limit).astype(dtype))
    assert_computes_its_reference("dequantize", [narrow, scale])


def test_scales_that_do_not_fit_are_refused() -> None:
    operator = find_operator("quantize")
    x, scale = TensorType((3, 4), "float32"), TensorType((3,), "float32")
    with pytest.raises(ModelError, match=r"shape \(3,\): expected one, or one for each"):
        operator.infer_types([x, scale], operator.complete({"axis": 1}))
