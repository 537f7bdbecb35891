"""Convolutions of tensors with channels in blocks, for graphs that store channels so."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ops.error import Numbers
from compiler.ops.tensors.epilogue import apply_epilogue, check_types
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of
from compiler.ops.tensors.windows import pad, windows


def conv2d_nchwc(
    data: te.Tensor,
    weight: te.Tensor,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    out_dtype: DType | None = None,
    acc_dtype: DType | None = None,
) -> te.Tensor:
    """Convolve `data[n, ci / i, h, w, i]` with `weight[co / o, ci / i, kernel, kernel, i, o]`.

    Args:
        data: The image, its channels in blocks of `i`.
        weight: The kernels.
        stride: The step between windows.
        padding: The number of zeros on each side; see `ops.conv2d`.
        dilation: The step between the elements of a window.
        out_dtype: The type of the result, which is `[n, co / o, h, w, o]`.
        acc_dtype: The type of the sum.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "conv2d_nchwc"
    types = check_types(operator, data.dtype, out_dtype, acc_dtype)
    check_same_dtype(operator, data, weight)
    n, blocks, h, w, block_ci = shape = dims_of(operator, data, 5)
    co_blocks, _, kh, kw, _, block_co = dims_of(operator, weight, 6)
    check_dims(operator, weight, (co_blocks, blocks, kh, kw, block_ci, block_co))
    window = windows(operator, (h, w), (kh, kw), stride, padding, dilation)
    before, after = ((0, 0, *side, 0) for side in (window.before, window.after))
    padded = pad(data, shape, before, after)
    rc = te.reduce_axis((0, blocks), name="rc")
    ry, rx = te.reduce_axis((0, kh), name="ry"), te.reduce_axis((0, kw), name="rx")
    ri = te.reduce_axis((0, block_ci), name="ri")

    def element(b: te.Value, f: te.Value, y: te.Value, x: te.Value, o: te.Value) -> te.Reduction:
        at = window.places((y, x), (ry, rx))
        product = types.product(padded[b, rc, *at, ri], weight[f, rc, ry, rx, ri, o])
        return te.sum(product, axis=[rc, ry, rx, ri])

    total = te.compute((n, co_blocks, *window.count, block_co), element, name=operator)
    return apply_epilogue(operator, total, 1, types)
