"""Windows over images by NumPy; channels come before space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from compiler.ops.operator import Array, Options


def numbers(value: Any, count: int) -> tuple[int, ...]:
    """Return one number for each dimension."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * count


def windows(p: Options, image: Array, kernel: Sequence[int], value: float = 0) -> Array:
    """Return the windows of an image: `[n, c, *places, *kernel]`."""
    ndim = image.ndim - 2
    padding = numbers(p.padding, ndim)
    sides = padding if len(padding) == 2 * ndim else padding * 2
    stride = numbers(kernel if p.stride is None else p.stride, ndim)
    dilation = numbers(getattr(p, "dilation", 1), ndim)
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    after = list(sides[ndim:])
    if getattr(p, "ceil_mode", False):
        for axis, size in enumerate(image.shape[2:]):
            remainder = size + sides[axis] + after[axis] - reach[axis]
            count = -(-remainder // stride[axis])
            if count * stride[axis] < size + sides[axis]:
                after[axis] += max(0, count * stride[axis] - remainder)
    margins = [(0, 0), (0, 0), *zip(sides[:ndim], after, strict=True)]
    padded = np.pad(image, margins, constant_values=value)
    slid = sliding_window_view(padded, reach, axis=tuple(range(2, image.ndim)))
    steps = (*(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    return np.asarray(slid[(slice(None), slice(None), *steps)])


def channels_first(p: Options, array: Array) -> Array:
    """Return an image in the layout of the options with its channels before space."""
    return array if p.layout.startswith("NC") else np.moveaxis(array, -1, 1)


def in_layout(p: Options, array: Array) -> Array:
    """Return an image whose channels come before space in the layout of the options."""
    return array if p.layout.startswith("NC") else np.moveaxis(array, 1, -1)
