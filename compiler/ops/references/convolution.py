"""Convolutions by NumPy."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from compiler.ops.operator import Array, Options
from compiler.ops.references.linear import with_epilogue
from compiler.ops.references.windows import channels_first, in_layout, numbers, windows


def conv(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    """Convolve by a matrix product over copied windows (im2col), for each group."""
    if not p.layout.startswith("NC"):
        w = np.moveaxis(w, (-1, -2), (0, 1))
    co, inner, *kernel = w.shape
    ndim = len(kernel)
    slid = windows(p, channels_first(p, a), kernel)
    n, _, *places = slid.shape[:-ndim]
    columns = np.moveaxis(slid, range(-ndim, 0), range(2, 2 + ndim)).reshape(
        n, p.groups, inner * math.prod(kernel), math.prod(places)
    )
    total = w.reshape(p.groups, co // p.groups, -1) @ columns
    return in_layout(p, with_epilogue(p, total.reshape(n, co, *places), bias, 1))


def winograd(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    """Convolve as `conv` does, with a stride of one."""
    fixed = SimpleNamespace(**vars(p), layout="NCHW", stride=1, dilation=1, groups=1)
    return conv(fixed, a, w, *bias)


def conv_blocked(p: Options, a: Array, w: Array) -> Array:
    """Convolve with all channels in one dimension."""
    fixed = SimpleNamespace(**vars(p), layout="NCHW", groups=1)
    image = a.transpose(0, 1, 4, 2, 3).reshape(p.n, p.ci, p.h, p.w)
    weights = w.transpose(0, 5, 1, 4, 2, 3).reshape(p.co, p.ci, *w.shape[2:4])
    out = conv(fixed, image, weights)
    blocks = out.reshape(p.n, p.co // p.block_co, p.block_co, *out.shape[2:])
    return np.moveaxis(blocks, 2, -1)


def depthwise(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    """Convolve each channel alone."""
    if p.layout == "NHWC":
        w = np.moveaxis(w, (2, 3), (0, 1))
    total = np.einsum("nchwyx,cmyx->ncmhw", windows(p, channels_first(p, a), w.shape[2:]), w)
    n, c, m, h, width = total.shape
    return in_layout(p, with_epilogue(p, total.reshape(n, c * m, h, width), bias, 1))


def conv_transpose(p: Options, a: Array, w: Array, *bias: Array) -> Array:
    """Sum the windows of the result over which each element of the image is spread."""
    (n, _, h, width), (_, co, kh, kw) = a.shape, w.shape
    stride, cut = numbers(p.stride, 2), numbers(p.padding, 2)
    more = numbers(p.output_padding, 2)
    full_output = np.zeros(
        (n, co, (h - 1) * stride[0] + kh + more[0], (width - 1) * stride[1] + kw + more[1]),
        np.result_type(a, w),
    )
    for y in range(kh):
        for x in range(kw):
            rows = slice(y, y + (h - 1) * stride[0] + 1, stride[0])
            columns = slice(x, x + (width - 1) * stride[1] + 1, stride[1])
            full_output[:, :, rows, columns] += np.einsum("nihw,io->nohw", a, w[:, :, y, x])
    rows, columns = (slice(c, size - c) for c, size in zip(cut, full_output.shape[2:], strict=True))
    return with_epilogue(p, full_output[:, :, rows, columns], bias, 1)
