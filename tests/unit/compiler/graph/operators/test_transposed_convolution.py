from typing import Any

import numpy as np
import pytest

from tests.graph_operators import assert_computes_its_reference, onnx_results

NAMES = {
    "dilation": "dilations",
    "groups": "group",
    "output_padding": "output_padding",
    "padding": "pads",
    "strides": "strides",
}
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 4, 6), (4, 3, 4), {"strides": (2,), "padding": (1, 1)}),
    ((2, 3, 4, 5), (3, 2, 3, 3), {}),
    ((1, 3, 4, 4), (3, 2, 3, 3), {"strides": (2, 2), "padding": (1, 1, 0, 0)}),
    ((1, 3, 4, 4), (3, 2, 3, 3), {"strides": (2, 2), "padding": (0, 0, 1, 2)}),
    (
        (1, 3, 4, 4),
        (3, 2, 3, 3),
        {"strides": (2, 3), "padding": (1, 1, 1, 1), "output_padding": (1, 1)},
    ),
    ((1, 2, 4, 4), (2, 2, 2, 3), {"dilation": (2, 2), "strides": (2, 1)}),
    ((1, 4, 4, 5), (4, 2, 3, 2), {"groups": 2, "strides": (2, 2), "padding": (1, 0, 1, 1)}),
    ((1, 3, 5, 5), (3, 1, 4, 4), {"groups": 3, "strides": (2, 2), "padding": (1, 1, 1, 1)}),
    ((1, 2, 3, 2, 3), (2, 2, 2, 2, 3), {"strides": (2, 1, 2), "padding": (0, 0, 1, 1, 0, 0)}),
]


@pytest.mark.parametrize(("image", "kernel", "attrs"), CASES)
def test_a_transposed_convolution_computes_what_onnx_defines(
    image: tuple[int, ...], kernel: tuple[int, ...], attrs: dict[str, Any]
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in (image, kernel)]
    name = f"nn.conv{len(image) - 2}d_transpose"
    [result] = assert_computes_its_reference(name, arrays, **attrs)
    if "groups" in attrs:  # the reference of ONNX takes the wrong weights for a group
        parts = [np.split(arrays[k], attrs["groups"], axis=1 - k) for k in range(2)]
        others = {key: value for key, value in attrs.items() if key != "groups"}
        several = [
            onnx_results("ConvTranspose", list(pair), **{NAMES[k]: v for k, v in others.items()})[0]
            for pair in zip(*parts, strict=True)
        ]
        expected = np.concatenate(several, axis=1)
    else:
        named = {NAMES[key]: value for key, value in attrs.items()}
        [expected] = onnx_results("ConvTranspose", arrays, **named)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
