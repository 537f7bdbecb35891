from typing import Any

import numpy as np
import pytest

from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.extents import multiply, symbol
from compiler.graph.nodes import TensorType, constant
from compiler.graph.operators.layouts import ConvLayouts
from tests.graph_operators import assert_computes_its_reference, onnx_results

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9), (4, 3, 3), {"strides": (2,), "padding": (2, 1), "dilation": (2,)}),
    ((2, 4, 7, 6), (6, 2, 3, 2), {"groups": 2, "padding": (1, 0, 2, 1)}),
    ((1, 4, 8, 8), (4, 1, 3, 3), {"groups": 4, "strides": (2, 2), "padding": (1, 1, 1, 1)}),
    ((1, 2, 8, 5), (6, 1, 3, 3), {"groups": 2, "padding": (0, 1, 0, 1)}),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 1), {"strides": (1, 2, 1), "padding": (1, 0, 0, 0, 1, 0)}),
    ((2, 8, 5, 5), (16, 8, 1, 1), {}),
]

NAMES = {"strides": "strides", "padding": "pads", "dilation": "dilations", "groups": "group"}


@pytest.mark.parametrize(("image", "kernel", "attrs"), CASES)
def test_a_convolution_computes_what_onnx_defines(
    image: tuple[int, ...], kernel: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (image, kernel)]
    [result] = assert_computes_its_reference(f"nn.conv{len(image) - 2}d", arrays, **attrs)
    [expected] = onnx_results("Conv", arrays, **{NAMES[name]: v for name, v in attrs.items()})
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("image", "kernel", "attrs"), CASES)
def test_with_channels_last_a_convolution_computes_the_same(
    image: tuple[int, ...], kernel: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in (image, kernel))
    [expected] = onnx_results("Conv", [x, w], **{NAMES[name]: v for name, v in attrs.items()})
    by_channel = attrs.get("groups") == image[1] == kernel[0] and len(image) == 4
    last = ConvLayouts.last(len(image) - 2, by_channel=by_channel)
    w = np.ascontiguousarray(np.moveaxis(w, (0, 1), (-2, -1) if by_channel else (-1, -2)))
    layouts: dict[str, Any] = {"data_layout": last.data, "kernel_layout": last.kernel}
    arrays = [np.ascontiguousarray(np.moveaxis(x, 1, -1)), w]
    op = f"nn.conv{len(image) - 2}d"
    [result] = assert_computes_its_reference(op, arrays, **attrs, **layouts)
    np.testing.assert_allclose(np.moveaxis(result, -1, 1), expected, rtol=1e-4, atol=1e-5)


def test_bytes_are_summed_exactly_in_32_bits() -> None:
    rng = np.random.default_rng(1)
    image = rng.integers(0, 256, (1, 4, 6, 6)).astype(np.uint8)
    kernel = rng.integers(-128, 128, (8, 4, 3, 3)).astype(np.int8)
    assert_computes_its_reference("nn.conv2d", [image, kernel], out_dtype="int32")


def test_narrow_floats_are_summed_in_float32() -> None:
    rng = np.random.default_rng(2)
    arrays = [rng.random(shape).astype(np.float16) for shape in ((1, 8, 6, 6), (4, 8, 3, 3))]
    assert_computes_its_reference("nn.conv2d", arrays, rtol=1e-3)


def test_symbolic_extents_pass_through() -> None:
    builder, n = GraphBuilder(), symbol("n")
    x = builder.input("x", TensorType((n, 3, multiply(n, 2), 8), "float32"))
    y = builder.add("nn.conv2d", x, constant(np.zeros((4, 3, 3, 3), np.float32)), strides=(2, 2))
    assert y.type.shape[:2] == (n, 4)
    assert y.type.shape[3] == 3


@pytest.mark.parametrize(
    ("attrs", "kernel", "reason"),
    [
        ({"padding": (1, 1)}, (4, 3, 3, 3), r"padding is \(1, 1\): expected 4 integers"),
        ({"groups": 2}, (4, 3, 3, 3), "do not fit 3 channels in 2 group"),
        ({"data_layout": "NHWC"}, (4, 3, 3, 3), "expected 'NCHW' and 'OIHW' or 'NHWC' and 'HWIO'"),
        ({}, (4, 3, 9, 3), "a window of 9 elements does not fit into 8"),
    ],
)
def test_what_does_not_fit_is_refused(
    attrs: dict[str, Any], kernel: tuple[int, ...], reason: str
) -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 3, 8, 8), "float32"))
    with pytest.raises(ModelError, match=reason):
        builder.add("nn.conv2d", x, constant(np.zeros(kernel, np.float32)), **attrs)
