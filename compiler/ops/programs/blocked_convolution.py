"""Convolutions with channels in blocks, for graphs that store channels so (NCHWc in TVM)."""

from __future__ import annotations

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build, operand
from compiler.ops.error import Numbers, OperatorError, check_extents, spread
from compiler.ops.operator import operator
from compiler.ops.references import convolution as references
from compiler.ops.tensors import blocked_convolution as tensors


@operator(tensors.conv2d_nchwc, reference=references.conv_blocked)
def conv2d_nchwc(  # noqa: PLR0917
    n: int,
    ci: int,
    h: int,
    w: int,
    co: int,
    kernel: Numbers,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    block_ci: int = 16,
    block_co: int = 16,
    dtype: DType = "float32",
    *,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> PrimFunc:
    """Convolve blocks of channels, `A[n, ci / i, h, w, i]`, into `[n, co / o, h, w, o]`.

    The weights are `W[co / o, ci / i, kernel, kernel, i, o]`. Operators that follow one another
    with the same blocks need no conversion between them: `transform_layout` of the arrays takes
    place at the ends of a graph. Otherwise it is `conv2d`.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        kernel: The height and width of the kernel.
        stride: The step between windows.
        padding: The number of zeros on each side, as in `conv2d`.
        dilation: The step between the elements of a window.
        block_ci: The number of input channels in a block, `i`; it divides them.
        block_co: The number of output channels in a block, `o`; it divides them.
        dtype: The type of image and weights.
        out_dtype: The type of the result.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    check_extents("conv2d_nchwc", n=n, ci=ci, h=h, w=w, co=co, block_ci=block_ci, block_co=block_co)
    if ci % block_ci or co % block_co:
        raise OperatorError(
            f"conv2d_nchwc: blocks of {block_ci} input and {block_co} output channels do not "
            f"divide {ci} and {co}"
        )
    kernels = spread("conv2d_nchwc", "kernel", kernel, 2, 1)
    blocks = (co // block_co, ci // block_ci)
    inputs = [
        operand((n, ci // block_ci, h, w, block_ci), dtype, "A"),
        operand((*blocks, *kernels, block_ci, block_co), dtype, "W"),
    ]
    output = tensors.conv2d_nchwc(
        *inputs,
        stride=stride,
        padding=padding,
        dilation=dilation,
        out_dtype=out_dtype,
        acc_dtype=acc_dtype,
    )
    return build("conv2d_nchwc", inputs, output)
