from typing import Any

import numpy as np
import pytest

from compiler.graph.nodes import Array
from tests.graph_operators import assert_computes_its_reference, onnx_results

WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 10), {"pool_size": (3,), "strides": (2,), "padding": (1, 0)}),
    ((1, 3, 8, 7), {"pool_size": (3, 2), "strides": (2, 2), "padding": (1, 0, 1, 1)}),
    ((1, 2, 7, 7), {"pool_size": (3, 3), "strides": (2, 2), "ceil_mode": True}),
    (
        (1, 2, 8, 8),
        {"pool_size": (3, 3), "strides": (3, 3), "padding": (1, 1, 1, 1), "ceil_mode": True},
    ),
    ((1, 2, 9, 9), {"pool_size": (2, 3), "dilation": (2, 2), "padding": (1, 1, 1, 1)}),
    ((1, 2, 4, 5, 4), {"pool_size": (2, 2, 2), "padding": (1, 0, 0, 0, 1, 0)}),
]
NAMES = {
    "pool_size": "kernel_shape",
    "padding": "pads",
    "dilation": "dilations",
    "strides": "strides",
}


def _onnx(op: str, x: Array, **attrs: Any) -> Array:
    return onnx_results(op, [x], **{NAMES.get(name, name): v for name, v in attrs.items()})[0]


def _image(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "attrs"), WINDOWS)
def test_the_largest_element_of_each_window_and_its_position(
    shape: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    x, name = _image(shape), f"nn.max_pool{len(shape) - 2}d"
    [largest] = assert_computes_its_reference(name, [x], **attrs)
    [positions] = assert_computes_its_reference(f"{name}_positions", [x], **attrs)
    flat = x.reshape(*shape[:2], -1)
    found = np.take_along_axis(flat, positions.reshape(*shape[:2], -1), axis=2)
    np.testing.assert_array_equal(found.reshape(largest.shape), largest)
    if len(shape) < 5:  # the reference of ONNX fails for paddings that differ in 3 dimensions
        np.testing.assert_array_equal(largest, _onnx("MaxPool", x, **attrs))


@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize(("shape", "attrs"), WINDOWS)
def test_the_mean_of_each_window(
    shape: tuple[int, ...], attrs: dict[str, Any], count_include_pad: bool
) -> None:
    x, name = _image(shape), f"nn.avg_pool{len(shape) - 2}d"
    more = {**attrs, "count_include_pad": count_include_pad}
    [result] = assert_computes_its_reference(name, [x], **more)
    np.testing.assert_allclose(result, _onnx("AveragePool", x, **more), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_norm_of_each_window(p: int) -> None:
    shape, attrs = WINDOWS[1]
    x = _image(shape)
    [result] = assert_computes_its_reference("nn.lp_pool2d", [x], p=p, **attrs)
    np.testing.assert_allclose(result[0], _onnx("LpPool", x, p=p, **attrs)[0], rtol=1e-4)


def test_padding_never_wins_among_bytes() -> None:
    x = np.full((1, 1, 3, 3), -128, np.int8)
    attrs: dict[str, Any] = {"pool_size": (2, 2), "padding": (1, 1, 0, 0)}
    assert_computes_its_reference("nn.max_pool2d", [x], **attrs)
