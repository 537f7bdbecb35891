"""The rates at which the tensor cores of a GPU multiply matrices."""

from __future__ import annotations

from compiler.target.gpus import Gpu

MMA_SHARE = 0.64
"""The share of the tensor cores' rate that `mma.sync` reaches on Hopper: 494 of 757 TFLOP/s on an
H800 (arXiv 2501.12084). `wgmma` reaches all of it there, and `mma.sync` on other architectures.
"""
_WARPGROUP_ARCHS = ("sm_90", "sm_90a")
# The rate of a data sheet that holds for a type of operands, as PTX names it.
_PEAKS = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tf32",
    "s8": "float8",
    "u8": "float8",
    "e4m3": "float8",
    "e5m2": "float8",
}


def matrix_rate(gpu: Gpu, operand: str, *, is_warpgroup: bool = False) -> float:
    """Return the operations in a second of all tensor cores of a GPU.

    Args:
        operand: The type of the operands, as PTX names it.
        is_warpgroup: Whether the instruction is `wgmma`, not `mma.sync`.
    """
    # GPUs without 8-bit floats multiply 8-bit integers at twice the rate of 16-bit types.
    peak = gpu.peaks.get(_PEAKS[operand], 2 * gpu.peaks["float16"])
    is_slow = gpu.arch in _WARPGROUP_ARCHS and not is_warpgroup
    return peak * (MMA_SHARE if is_slow else 1)
