"""Small products of matrices and convolutions, of the types and layouts of tensor cores."""

from __future__ import annotations

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tests.property.generators.choice import Choose

EXTENTS = (8, 15, 16, 24, 33, 40, 64)
_TYPES = (
    ("float16", "float32"),
    ("bfloat16", "float32"),
    ("float16", "float16"),
    ("int8", "int32"),
)
_ACTIVATIONS = (None, "relu")


def matrix_product(choose: Choose) -> PrimFunc:
    """Return a product of any extents, perhaps transposed, in a batch, or with an epilogue."""
    m, n, k = (choose(EXTENTS) for _ in range(3))
    dtype, sums = choose(_TYPES)
    is_float = dtype != "int8"
    return ops.matmul(
        m,
        n,
        k,
        dtype=dtype,
        batch=choose((1, 2)),
        transpose_a=choose((False, True)),
        transpose_b=choose((False, True)),
        bias=is_float and choose((False, True)),
        activation=choose(_ACTIVATIONS) if is_float else None,
        out_dtype=choose((dtype, sums)) if is_float else sums,
        acc_dtype=sums,
    )


def window_product(choose: Choose) -> PrimFunc:
    """Return a convolution with enough channels and pixels for tensor cores."""
    dtype, sums = choose(_TYPES[:3])
    stride = choose((1, 2))
    return ops.conv2d(
        choose((1, 2)),
        choose((3, 8, 16)),
        5 * stride,
        6 * stride,
        choose((8, 12, 24)),
        choose((1, 3)),
        stride,
        choose((0, 1)),
        dtype=dtype,
        layout=choose(("NCHW", "NHWC")),
        bias=choose((False, True)),
        activation=choose(_ACTIVATIONS),
        out_dtype=choose((dtype, sums)),
        acc_dtype=sums,
    )
