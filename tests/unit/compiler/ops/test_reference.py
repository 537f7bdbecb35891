"""The references themselves, each against another way to compute the same, mostly plain loops."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.signal
import scipy.special
from numpy.typing import NDArray

from compiler import ops

Array = NDArray[Any]


def given(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.25, 1, shape) * rng.choice((-1, 1), shape) for shape in shapes]


def check(spec: str, shapes: Sequence[tuple[int, ...]], other: Callable[..., Any]) -> None:
    arrays = [a.astype(np.float64) for a in given(*shapes)]
    got = ops.reference(f"{spec}:float64")(*arrays)
    np.testing.assert_allclose(got, other(*arrays), rtol=1e-9, atol=1e-12)


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


def pooled(
    a: Array, kernel: int, stride: int, padding: int, *, ceil: bool, mean: bool, include: bool
) -> Array:
    """Pool by loops, as frameworks define it."""
    n, c, *sizes = a.shape
    counts = []
    for size in sizes:
        left = size + 2 * padding - kernel
        count = (-(-left // stride) if ceil else left // stride) + 1
        if ceil and (count - 1) * stride >= size + padding:
            count -= 1
        counts.append(count)
    out = np.zeros((n, c, *counts))
    for y, x in itertools.product(*map(range, counts)):
        starts = [y * stride - padding, x * stride - padding]
        ends = [min(s + kernel, size + padding) for s, size in zip(starts, sizes, strict=True)]
        inside = [
            slice(max(s, 0), min(e, size)) for s, e, size in zip(starts, ends, sizes, strict=True)
        ]
        part = a[:, :, inside[0], inside[1]]
        area = (ends[0] - starts[0]) * (ends[1] - starts[1])
        count = area if include else part.shape[2] * part.shape[3]
        out[:, :, y, x] = part.sum((2, 3)) / count if mean else part.max((2, 3))
    return out


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 3, 1), (2, 3, 1)]
)
def test_pools(kernel: int, stride: int, padding: int, *, ceil: bool) -> None:
    numbers = f"2,3,8,9,{kernel},{stride},{padding},ceil_mode={str(ceil).lower()}"
    size = (kernel, stride, padding)
    check(
        f"max_pool2d:{numbers}",
        [(2, 3, 8, 9)],
        lambda a: pooled(a, *size, ceil=ceil, mean=False, include=True),
    )
    for include in (True, False):
        check(
            f"avg_pool2d:{numbers},count_include_pad={str(include).lower()}",
            [(2, 3, 8, 9)],
            lambda a, i=include: pooled(a, *size, ceil=ceil, mean=True, include=i),
        )


def test_products() -> None:
    check("matmul:3,4,5", [(3, 5), (5, 4)], lambda a, b: np.einsum("ik,kj->ij", a, b))
    check(
        "matmul:3,4,5,batch=2x3,transpose_a=true,transpose_b=true,bias=true",
        [(2, 3, 5, 3), (2, 3, 4, 5), (4,)],
        lambda a, b, c: np.einsum("xyki,xyjk->xyij", a, b) + c,
    )
    check("dense:3,4,5", [(3, 5), (4, 5)], lambda a, b: np.einsum("ik,jk->ij", a, b))


def test_products_of_narrow_types_are_added_up_in_wide_ones() -> None:
    a, b = (np.full(s, 100, np.int8) for s in ((2, 64), (64, 3)))
    got = ops.reference("matmul:2,3,64,out_dtype=int32:int8")(a, b)
    np.testing.assert_array_equal(got, np.full((2, 3), 640_000, np.int32))


def test_functions() -> None:
    gauss = [(3, 4)]
    check("gelu:3,4", gauss, lambda a: a * scipy.special.ndtr(a))
    check("erf:3,4", gauss, scipy.special.erf)
    check("sigmoid:3,4", gauss, scipy.special.expit)
    check("silu:3,4", gauss, lambda a: a * scipy.special.expit(a))
    check("softmax:3,4", gauss, lambda a: scipy.special.softmax(a, axis=1))
    check("softmax:3,4,axis=0", gauss, lambda a: scipy.special.softmax(a, axis=0))
    check("log_softmax:3,4", gauss, lambda a: scipy.special.log_softmax(a, axis=1))
    tanh = ops.reference("gelu:3,4,approximate=tanh:float64")
    exact = ops.reference("gelu:3,4:float64")
    np.testing.assert_allclose(tanh(*given(*gauss)), exact(*given(*gauss)), atol=1e-3)


def test_norms() -> None:
    def rows(a: Array, gamma: Array, beta: Array) -> Array:
        out = [(r - r.mean()) / np.sqrt(((r - r.mean()) ** 2).sum() / r.size + 1e-5) for r in a]
        return np.array(out) * gamma + beta

    check("layer_norm:5,8", [(5, 8), (8,), (8,)], rows)
    check("layer_norm:5,4,2,axis=1", [(5, 4, 2), (4, 2), (4, 2)], rows)
    check(
        "rms_norm:5,8",
        [(5, 8), (8,)],
        lambda a, w: np.array([r / np.sqrt((r @ r) / r.size + 1e-5) for r in a]) * w,
    )
    a, gamma, beta, mean, variance = given((2, 3, 4), (3,), (3,), (3,), (3,))
    got = ops.reference("batch_norm:2,3,4:float64")(a, gamma, beta, mean, abs(variance))
    for c in range(3):
        scale = gamma[c] / np.sqrt(abs(variance[c]) + 1e-5)
        np.testing.assert_allclose(got[:, c], (a[:, c] - mean[c]) * scale + beta[c])


def test_attention_query_by_query() -> None:
    def slow(q: Array, k: Array, v: Array, *, causal: bool) -> Array:
        out = np.zeros_like(q)
        for b, h, i in itertools.product(*map(range, q.shape[:3])):
            seen = i + 1 if causal else k.shape[2]
            weights = np.exp(k[b, h, :seen] @ q[b, h, i] / 2)
            out[b, h, i] = weights @ v[b, h, :seen] / weights.sum()
        return out

    shapes = [(2, 3, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4)]
    check("attention:2,3,5,5,4", shapes, lambda *a: slow(*a, causal=False))
    check("attention:2,3,5,5,4,causal=true", shapes, lambda *a: slow(*a, causal=True))


def test_places_of_extremes() -> None:
    (a,) = given((3, 4, 5))
    for axis in range(3):
        got = ops.reference("argmax", 3, 4, 5, axis=axis, dtype="float64")(a)
        for place in np.ndindex(got.shape):
            row = a[(*place[:axis], slice(None), *place[axis:])]
            assert row[got[place]] == max(row)
    got = ops.reference("argmin", 3, 4, 5, axis=(0, 2), dtype="float64")(a)
    for j in range(4):
        assert a[got[j] // 5, j, got[j] % 5] == a[:, j].min()


def test_elements_by_indices() -> None:
    (a,), indices = given((4, 5)), np.array([[3, 0, 9], [1, -2, 2]], np.int32)
    clipped = indices.clip(0, 3)
    got = ops.reference("take:4,5,indices=2x3:float64")(a, indices)
    for place in np.ndindex(2, 3, 5):
        assert got[place] == a[clipped[place[:2]], place[2]]
    got = ops.reference("gather:4,5,indices=2x3:float64")(a, indices)
    for i, j in np.ndindex(2, 3):
        assert got[i, j] == a[clipped[i, j], j]


def test_running_sums() -> None:
    def slow(a: Array) -> Array:
        return np.array([[a[i, : j + 1].sum() for j in range(5)] for i in range(3)])

    check("cumsum:3,5", [(3, 5)], slow)
    check("cumsum:5,3,axis=0", [(5, 3)], lambda a: slow(a.T).T)
