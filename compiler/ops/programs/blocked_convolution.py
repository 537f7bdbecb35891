"""Convolutions whose operands have their channels in blocks, for graphs that keep them so."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ops.build import build
from compiler.ops.error import Numbers, OperatorError, check_extents
from compiler.ops.tensors.epilogue import Epilogue, check_types
from compiler.ops.tensors.windows import pad, windows


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

    The weights are `W[co / o, ci / i, kernel, kernel, i, o]`. Where operators that follow one
    another agree on their blocks, nothing is converted between them: `transform_layout` of the
    arrays takes place where a graph begins and ends. Otherwise it is `conv2d`.

    Args:
        n: The batch size.
        ci: The number of input channels.
        h: The height of the input.
        w: The width of the input.
        co: The number of output channels.
        kernel: The height and width of the kernel.
        stride: The step between windows.
        padding: How many zeros are put on each side, as in `conv2d`.
        dilation: The step between the elements of a window.
        block_ci: How many input channels lie side by side, `i`; it divides them.
        block_co: How many output channels lie side by side, `o`; it divides them.
        dtype: The type of image and weights.
        out_dtype: The type of the result.
        acc_dtype: The type that is added up in.

    Raises:
        OperatorError: If a number is out of range or the numbers do not fit together.
    """
    operator = "conv2d_nchwc"
    check_extents(operator, n=n, ci=ci, co=co, block_ci=block_ci, block_co=block_co)
    if ci % block_ci or co % block_co:
        raise OperatorError(
            f"{operator}: blocks of {block_ci} input and {block_co} output channels do not divide "
            f"{ci} and {co}"
        )
    window = windows(operator, (h, w), kernel, stride, padding, dilation)
    types = check_types(operator, dtype, out_dtype, acc_dtype)
    shape = (n, ci // block_ci, h, w, block_ci)
    a = te.placeholder(shape, dtype, name="A")
    before, after = ((0, 0, *side, 0) for side in (window.before, window.after))
    padded = pad(a, shape, before, after)
    blocks = (co // block_co, ci // block_ci)
    weights = te.placeholder((*blocks, *window.kernel, block_ci, block_co), dtype, name="W")
    rc = te.reduce_axis((0, ci // block_ci), name="rc")
    ry, rx = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in zip(window.kernel, ("ry", "rx"), strict=True)
    )
    ri = te.reduce_axis((0, block_ci), name="ri")

    def element(b: te.Value, f: te.Value, y: te.Value, x: te.Value, o: te.Value) -> te.Reduction:
        place = window.places((y, x), (ry, rx))
        product = types.product(padded[b, rc, *place, ri], weights[f, rc, ry, rx, ri, o])
        return te.sum(product, axis=[rc, ry, rx, ri])

    result = (n, blocks[0], *window.count, block_co)
    total = te.compute(result, element, name=operator)
    return build(operator, [a, weights, *Epilogue(operator).apply(total, result, 1, types)])
