"""The products of PyTorch: of oneDNN or MKL, as it chooses. It imports PyTorch."""

from __future__ import annotations

from typing import Any

import torch


def matmul(
    a: Any, b: Any, c: Any, transpose_a: int = 0, transpose_b: int = 0, *, num_threads: int = 0
) -> None:
    """Compute `c = a @ b`; see `blas.matmul`."""
    left, right, result = (torch.from_numpy(array) for array in (a, b, c))
    before = torch.get_num_threads()
    if num_threads not in (0, before):
        torch.set_num_threads(num_threads)
    try:
        with torch.no_grad():
            torch.matmul(
                left.transpose(-1, -2) if transpose_a else left,
                right.transpose(-1, -2) if transpose_b else right,
                out=result,
            )
    finally:
        if num_threads not in (0, before):
            torch.set_num_threads(before)
