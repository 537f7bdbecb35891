"""Winograd convolutions: fewer multiplications; `tensors/winograd.py` states their errors."""

from __future__ import annotations

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import bias_operand, build, operand
from compiler.ops.error import Numbers, check_extents
from compiler.ops.operator import operator
from compiler.ops.references import convolution as references
from compiler.ops.tensors import winograd as tensors
from compiler.ops.tensors.winograd_transforms import KERNEL


@operator(tensors.conv2d_winograd, reference=references.winograd)
def conv2d_winograd(  # noqa: PLR0917
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    padding: Numbers = 0,
    tile: int = 2,
    dtype: DType = "float32",
    *,
    bias: bool = False,
    activation: str | None = None,
) -> PrimFunc:
    """Convolve `A[n, ci, h, w]` with `W[co, ci, 3, 3]` in steps of one, by transformed tiles.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        padding: The number of zeros on each side, as in `conv2d`.
        tile: The number of outputs of a tile in each dimension: 2, or 4, which is faster and
            less exact.
        dtype: The type of image, weights and result, of 32 bits or more.
        bias: Whether `bias[co]` is added.
        activation: The function applied last, as in `matmul`.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    check_extents("conv2d_winograd", n=n, ci=ci, h=h, w=w, co=co)
    inputs = [
        operand((n, ci, h, w), dtype, "A"),
        operand((co, ci, KERNEL, KERNEL), dtype, "W"),
        *bias_operand("conv2d_winograd", co, dtype, bias=bias),
    ]
    output = tensors.conv2d_winograd(*inputs, padding=padding, tile=tile, activation=activation)
    return build("conv2d_winograd", inputs, output)
