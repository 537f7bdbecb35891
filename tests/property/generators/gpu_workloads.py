"""Workloads that are large enough for the rules of GPUs, and small enough for the emulator."""

from __future__ import annotations

from collections.abc import Callable

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tests.property.generators.choice import Choose
from tests.property.generators.matrix_products import EXTENTS, matrix_product, window_product
from tests.property.generators.workloads import OPERATORS, PROGRAMS, SCRIPTS, Make

_FLOATS = ("float32", "float32", "float16", "bfloat16")


def float_product(choose: Choose) -> PrimFunc:
    """Return a product for threads without tensor cores."""
    m, n, k = (choose(EXTENTS) for _ in range(3))
    return ops.matmul(
        m,
        n,
        k,
        dtype=choose(("float32", "float32", "float64")),
        batch=choose(((), (), 2)),
        transpose_a=choose((False, True)),
        transpose_b=choose((False, True)),
        bias=choose((False, True)),
        activation=choose((None, "relu", "gelu")),
    )


def warpgroup_product(choose: Choose) -> PrimFunc:
    """Return a product that is large enough for warpgroups."""
    dtype = choose(("float16", "bfloat16"))
    return ops.matmul(
        choose((64, 72, 128)),
        choose((64, 96, 128)),
        choose((16, 40, 64, 128)),
        dtype=dtype,
        batch=choose(((), (), 2)),
        transpose_a=choose((False, True)),
        transpose_b=choose((False, True)),
        bias=choose((False, True)),
        activation=choose((None, "relu")),
        out_dtype=choose((dtype, "float32")),
        acc_dtype="float32",
    )


def float_window(choose: Choose) -> PrimFunc:
    """Return a convolution for threads without tensor cores."""
    kind, stride = choose(("1d", "2d", "2d", "3d", "depthwise", "transpose")), choose((1, 2))
    extents, channels = (choose((7, 10)), choose((8, 12))), choose((4, 8, 12))
    if kind == "1d":
        return ops.conv1d(1, channels, choose((24, 33)), choose((8, 12)), 3, stride, 1)
    if kind == "2d":
        groups = choose((1, 1, 2))
        return ops.conv2d(1, channels, *extents, 8, choose((1, 3)), stride, 1, groups=groups)
    if kind == "3d":
        return ops.conv3d(1, 4, 4, *extents, 6, 2, stride, 1)
    if kind == "depthwise":
        return ops.depthwise_conv2d(1, channels, *extents, 3, stride, 1, dtype=choose(_FLOATS))
    return ops.conv2d_transpose(1, 4, *extents, 4, 3, stride, 1)


def row_chain(choose: Choose) -> PrimFunc:
    """Return a softmax or a norm of some rows."""
    make: Callable[..., PrimFunc] = choose(
        (ops.softmax, ops.softmax, ops.log_softmax, ops.layer_norm, ops.rms_norm)
    )
    rows = choose(((5,), (16,), (2, 3)))
    return make(*rows, choose((33, 64, 130, 256, 300)), dtype=choose(_FLOATS))


def reduction(choose: Choose) -> PrimFunc:
    """Return a reduction of some or all axes."""
    make: Callable[..., PrimFunc] = choose(
        (ops.sum, ops.max, ops.min, ops.mean, ops.argmax, ops.argmin)
    )
    shape, axis = choose(
        (((3, 1000), 1), ((40, 70), 1), ((300, 24), 0), ((2, 32, 48), (1, 2)), ((1 << 15,), None))
    )
    if make in (ops.argmax, ops.argmin) and not isinstance(axis, int):
        shape, axis = (40, 70), 1  # one thread searches a whole row
    dtype = choose(_FLOATS if make is ops.mean else (*_FLOATS, "int32"))
    return make(*shape, axis=axis, dtype=dtype)


def transposition(choose: Choose) -> PrimFunc:
    """Return a transpose of two or more axes."""
    shape, axes = choose(
        (((33, 70), None), ((64, 40), None), ((3, 24, 40), (0, 2, 1)), ((6, 10, 32), (2, 0, 1)))
    )
    return ops.transpose(*shape, axes=axes, dtype=choose((*_FLOATS, "int8")))


def attention(choose: Choose) -> PrimFunc:
    """Return an attention of a few heads."""
    m, n, d = choose(((8, 16, 8), (17, 24, 16), (32, 33, 20), (32, 64, 32)))
    dtype, causal = choose(_FLOATS), choose((False, True))
    return ops.attention(1, choose((1, 2)), m, n, d, dtype, causal=causal)


def tensor_attention(choose: Choose) -> PrimFunc:
    """Return an attention whose products tensor cores compute."""
    m, n, d = choose(((32, 64, 32), (64, 96, 32), (32, 128, 64)))
    dtype, causal = choose(("float16", "bfloat16")), choose((False, True))
    return ops.attention(1, choose((1, 2)), m, n, d, dtype, causal=causal)


def operator(choose: Choose) -> PrimFunc:
    """Return any operator of the library, with tiny extents."""
    return OPERATORS[choose(sorted(OPERATORS))](choose)


def program(choose: Choose) -> PrimFunc:
    """Return a program that no operator has: several blocks, outputs or scans."""
    programs = {**PROGRAMS, **SCRIPTS}
    return programs[choose(sorted(programs))](choose)


GPU_WORKLOADS: dict[str, Make] = {
    make.__name__: make
    for make in (
        matrix_product,
        window_product,
        warpgroup_product,
        float_product,
        float_window,
        row_chain,
        reduction,
        transposition,
        attention,
        tensor_attention,
        operator,
        program,
    )
}
ROUND = (
    *("matrix_product", "row_chain", "window_product", "reduction", "float_product", "operator"),
    *("transposition", "warpgroup_product", "float_window", "attention", "row_chain", "program"),
    *("float_product", "matrix_product", "window_product", "operator", "warpgroup_product"),
    *("tensor_attention", "tensor_attention"),
)
"""Their order, so that each rule gets its share. 17 are coprime to the 3 GPUs of a campaign."""
