"""References of convolutions against loops over all elements."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.signal
import scipy.special

from compiler import ops
from tests.unit.compiler.ops.reference_checks import Array, check, given


def convolved(
    a: Array, w: Array, *, stride: int, padding: int, dilation: int, groups: int
) -> Array:
    """Convolve by a loop over all elements of the result and of a window."""
    (n, ci, height, width), (co, inner, kh, kw) = a.shape, w.shape
    oh, ow = (
        (size + 2 * padding - dilation * (k - 1) - 1) // stride + 1
        for size, k in ((height, kh), (width, kw))
    )
    out = np.zeros((n, co, oh, ow))
    for b, o, y, x, i, u, v in itertools.product(*map(range, (n, co, oh, ow, inner, kh, kw))):
        row = y * stride + u * dilation - padding
        column = x * stride + v * dilation - padding
        if 0 <= row < height and 0 <= column < width:
            channel = o // (co // groups) * inner + i
            out[b, o, y, x] += a[b, channel, row, column] * w[o, i, u, v]
    assert ci == inner * groups
    return out


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [
        (1, 0, 1, 1),
        (2, 1, 1, 1),
        (1, 2, 2, 1),
        (3, 1, 1, 2),
        (2, 2, 2, 4),
    ],
)
def test_convolutions(stride: int, padding: int, dilation: int, groups: int) -> None:
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    a, w = (2, 4, 7, 6), (8, 4 // groups, 3, 3)
    numbers = f"3,{stride},{padding},{dilation},{groups}"
    check(f"conv2d:2,4,7,6,8,{numbers}", [a, w], lambda x, y: convolved(x, y, **options))

    def channels_last(x: Array, y: Array) -> Array:
        out = convolved(x.transpose(0, 3, 1, 2), y.transpose(3, 2, 0, 1), **options)
        return out.transpose(0, 2, 3, 1)

    check(
        f"conv2d:2,4,7,6,8,{numbers},layout=NHWC",
        [(2, 7, 6, 4), (3, 3, 4 // groups, 8)],
        channels_last,
    )


def test_a_convolution_in_one_and_three_dimensions() -> None:
    def each(a: Array, w: Array) -> Array:
        return np.array(
            [
                [
                    sum(
                        scipy.signal.correlate(a[b, i], w[o, i], "valid") for i in range(a.shape[1])
                    )
                    for o in range(w.shape[0])
                ]
                for b in range(a.shape[0])
            ]
        )

    check("conv1d:2,3,9,4,3", [(2, 3, 9), (4, 3, 3)], each)
    check("conv3d:2,3,5,6,4,4,3x2x2", [(2, 3, 5, 6, 4), (4, 3, 3, 2, 2)], each)


def test_a_transposed_convolution_is_the_gradient_of_a_convolution() -> None:
    # <conv(x), y> == <x, conv_transpose(y)> for all x and y.
    (x, w, y) = given((1, 4, 8, 7), (3, 4, 3, 3), (1, 3, 4, 4))
    forth = ops.reference("conv2d:1,4,8,7,3,3,2,1:float64")(x, w)
    back = ops.reference("conv2d_transpose:1,3,4,4,4,3,2,1,1x0:float64")(y, w)
    np.testing.assert_allclose((forth * y).sum(), (x * back).sum(), rtol=1e-12)


def test_a_depthwise_convolution_is_one_with_a_group_a_channel() -> None:
    def grouped(a: Array, w: Array) -> Array:
        kernels = w.reshape(6, 1, 3, 3)
        return convolved(a, kernels, stride=2, padding=1, dilation=1, groups=3)

    check("depthwise_conv2d:2,3,7,6,3,2,1,multiplier=2", [(2, 3, 7, 6), (3, 2, 3, 3)], grouped)
