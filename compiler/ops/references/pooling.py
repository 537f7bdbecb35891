"""Pools by NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from compiler.ops.operator import Array, Options
from compiler.ops.references.windows import channels_first, in_layout, numbers, windows


def max_pool(p: Options, a: Array) -> Array:
    """Return the largest element of each window."""
    least = -np.inf if a.dtype.kind == "f" else np.iinfo(a.dtype).min
    slid = windows(p, channels_first(p, a), numbers(p.kernel, 2), least)
    return in_layout(p, slid.max(axis=(-2, -1)))


def avg_pool(p: Options, a: Array) -> Array:
    """Return the mean of each window."""
    image, kernel = channels_first(p, a), numbers(p.kernel, 2)
    ones = np.ones_like(image)
    if p.count_include_pad:
        padding = numbers(p.padding, 2)
        sides = padding if len(padding) == 4 else padding * 2
        margins = [(0, 0), (0, 0), (sides[0], sides[2]), (sides[1], sides[3])]
        # Elements beyond the padding, which the last window may reach, do not count.
        ones = np.pad(ones, margins, constant_values=1)
        stride = kernel if p.stride is None else p.stride
        extra = windows(p, image, kernel).shape
        q = SimpleNamespace(padding=0, stride=stride, ceil_mode=p.ceil_mode)
        counts = windows(q, ones, kernel).sum(axis=(-2, -1))[:, :, : extra[2], : extra[3]]
    else:
        counts = windows(p, ones, kernel).sum(axis=(-2, -1))
    return in_layout(p, windows(p, image, kernel).sum(axis=(-2, -1)) / counts)
