"""A product of matrices in Triton, with its autotuner: tiles of both operands, one loop over k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from compiler.ops.spec import parse_spec
from workers.libraries.library import LibraryCall, LibraryError
from workers.libraries.torch_cuda import on_stream, tensor_of

_TILES = ((128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (64, 128, 64, 4, 4), (16, 128, 128, 4, 4))
_CONFIGS = [
    triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages)
    for bm, bn, bk, warps, stages in _TILES
]


@triton.autotune(configs=_CONFIGS, key=["m", "n", "k"])  # type: ignore[untyped-decorator]
@triton.jit  # type: ignore[untyped-decorator]
def _multiply(  # noqa: PLR0917 - the arguments of a kernel
    a: Any,
    b: Any,
    c: Any,
    m: Any,
    n: Any,
    k: Any,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
) -> None:
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        depth = start + steps
        left = tl.load(
            a + rows[:, None] * k + depth[None, :],
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            b + depth[:, None] * n + columns[None, :],
            mask=(depth[:, None] < k) & (columns[None, :] < n),
            other=0.0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(c.dtype.element_ty), mask=mask)


def prepare(spec: str, inputs: Sequence[Any]) -> LibraryCall:
    """Return the call of a plain product.

    Raises:
        LibraryError: If the operator is another one.
    """
    parsed = parse_spec(spec)
    if parsed.name != "matmul" or set(parsed.options) - {"dtype", "acc_dtype"}:
        raise LibraryError("there is a plain product in Triton only")
    a, b = map(tensor_of, inputs)
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)

    def grid(tile: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(m, tile["BM"]), triton.cdiv(n, tile["BN"])

    def run() -> Any:
        _multiply[grid](a, b, c, m, n, k)
        return c

    return on_stream(run, lambda result: result)
