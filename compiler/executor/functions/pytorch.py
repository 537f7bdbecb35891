"""Products and convolutions of PyTorch: of oneDNN or MKL, as it chooses. It imports PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


def matmul(
    a: Any, b: Any, c: Any, transpose_a: int = 0, transpose_b: int = 0, *, num_threads: int = 0
) -> None:
    """Compute `c = a @ b`; see `blas.matmul`."""
    left, right, result = (torch.from_numpy(array) for array in (a, b, c))
    with _threads(num_threads):
        torch.matmul(
            left.transpose(-1, -2) if transpose_a else left,
            right.transpose(-1, -2) if transpose_b else right,
            out=result,
        )


def conv2d(  # noqa: PLR0917 - calls pass positions
    data: Any,
    weight: Any,
    result: Any,
    stride_y: int = 1,
    stride_x: int = 1,
    dilation_y: int = 1,
    dilation_x: int = 1,
    groups: int = 1,
    *,
    num_threads: int = 0,
) -> None:
    """Convolve images in NCHW without padding.

    Args:
        data: `(n, channels, height, width)`.
        weight: `(filters, channels // groups, kernel height, kernel width)`.
        result: `(n, filters, ...)`.
        stride_y, stride_x, dilation_y, dilation_x, groups: As for `torch.nn.functional.conv2d`.
        num_threads: The most threads to use; 0 for the library's choice.
    """
    images, filters, output = (torch.from_numpy(array) for array in (data, weight, result))
    with _threads(num_threads):
        strides, dilations = (stride_y, stride_x), (dilation_y, dilation_x)
        output.copy_(torch.conv2d(images, filters, None, strides, 0, dilations, groups))


@contextmanager
def _threads(num_threads: int) -> Iterator[None]:
    """Limit the threads of PyTorch, and compute without gradients."""
    before = torch.get_num_threads()
    is_changed = num_threads not in (0, before)
    if is_changed:
        torch.set_num_threads(num_threads)
    try:
        with torch.no_grad():
            yield
    finally:
        if is_changed:
            torch.set_num_threads(before)
