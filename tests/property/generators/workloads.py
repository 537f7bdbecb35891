"""Small workloads for random schedules: every operator of the library, and programs of the kinds
that operators do not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from compiler import ops, te
from compiler.ir.core.program import PrimFunc
from compiler.script import parse
from tests.property.generators.choice import Choose
from tests.property.generators.kinds import TEXTS, text_of

Make: TypeAlias = Callable[[Choose], PrimFunc]


def matmul_relu(choose: Choose) -> PrimFunc:
    n, m, k = choose((4, 6, 7)), choose((3, 8)), choose((4, 5))
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), "r")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "Y")
    C = te.compute((n, m), lambda i, j: te.max(Y[i, j], 0.0), "C")
    return te.create_prim_func([A, B, C])


def matmul_bias(choose: Choose) -> PrimFunc:
    n, m, k = choose((4, 5)), choose((4, 6)), choose((3, 4))
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    bias = te.placeholder((m,), name="bias")
    r = te.reduce_axis((0, k), "r")
    S = te.compute((m,), lambda j: bias[j] * 2.0, "S")
    Y = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "Y")
    C = te.compute((n, m), lambda i, j: Y[i, j] + S[j], "C")
    return te.create_prim_func([A, B, bias, C])


def elementwise(choose: Choose) -> PrimFunc:
    n, m = choose((4, 7)), choose((6, 8))
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, j] * 2.0, "B")
    C = te.compute((n, m), lambda i, j: B[i, j] + 1.0, "C")
    D = te.compute((n, m), lambda i, j: C[i, j] * B[i, j], "D")
    return te.create_prim_func([A, D])


def transposed(choose: Choose) -> PrimFunc:
    n, m = choose((4, 6)), choose((5, 8))
    A = te.placeholder((n, m), name="A")
    B = te.compute((m, n), lambda i, j: A[j, i] + 1.0, "B")
    C = te.compute((n, m), lambda i, j: B[j, i] * 2.0, "C")
    return te.create_prim_func([A, C])


def convolution(choose: Choose) -> PrimFunc:
    size, stride, dilation = choose((9, 12)), choose((1, 2)), choose((1, 2))
    out = (size + 2 - 2 * dilation - 1) // stride + 1
    A, W = te.placeholder((2, size), name="A"), te.placeholder((3, 2, 3), name="W")
    c, r = te.reduce_axis((0, 2), "c"), te.reduce_axis((0, 3), "r")
    P = te.compute(
        (2, size + 2),
        lambda i, x: te.if_then_else(te.all(x >= 1, x < size + 1), A[i, x - 1], 0.0),
        "P",
    )
    Y = te.compute(
        (3, out),
        lambda o, x: te.sum(P[c, x * stride + r * dilation] * W[o, c, r], axis=[c, r]),
        "Y",
    )
    Z = te.compute((3, out), lambda o, x: te.max(Y[o, x], 0.0), "Z")
    return te.create_prim_func([A, W, Z])


def stencil(choose: Choose) -> PrimFunc:
    n = choose((9, 12))
    A = te.placeholder((n + 2,), name="A")
    B = te.compute((n + 2,), lambda i: A[i] * 3.0, "B")
    C = te.compute((n,), lambda i: B[i] + B[i + 1] + B[i + 2], "C")
    D = te.compute((n,), lambda i: C[i] - 1.0, "D")
    return te.create_prim_func([A, D])


def rows(choose: Choose) -> PrimFunc:
    n, m = choose((4, 5)), choose((6, 7))
    A = te.placeholder((n, m), name="A")
    k, q = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "q")
    M = te.compute((n,), lambda i: te.max(A[i, k], axis=k), "M")
    E = te.compute((n, m), lambda i, j: A[i, j] - M[i], "E")
    S = te.compute((n,), lambda i: te.sum(E[i, q], axis=q), "S")
    D = te.compute((n, m), lambda i, j: E[i, j] + S[i], "D")
    return te.create_prim_func([A, D])


def pooling(choose: Choose) -> PrimFunc:
    n = choose((4, 5))
    A = te.placeholder((2, 2 * n + 1), name="A")
    B = te.compute((2, 2 * n + 1), lambda c, i: A[c, i] * 2.0, "B")
    k = te.reduce_axis((0, 3), "k")
    C = te.compute((2, n), lambda c, i: te.max(B[c, i * 2 + k], axis=k), "C")
    return te.create_prim_func([A, C])


def two_outputs(choose: Choose) -> PrimFunc:
    n, k = choose((6, 7)), choose((4, 5))
    A = te.placeholder((n, k), name="A")
    r = te.reduce_axis((0, k), "r")
    S = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), "S")
    D = te.compute((n,), lambda i: S[i] * 2.0, "D")
    return te.create_prim_func([A, S, D])


def recurrence(choose: Choose) -> PrimFunc:
    n, m = choose((4, 5)), choose((4, 6))
    X, state = te.placeholder((n, m), name="X"), te.placeholder((n, m), name="state")
    first = te.compute((1, m), lambda _, i: X[0, i] * 2.0, "first")
    update = te.compute((n, m), lambda t, i: state[t - 1, i] + X[t, i], "update")
    S = te.scan(first, update, state, inputs=[X], name="S")
    D = te.compute((n, m), lambda t, i: te.max(S[t, i], 0.0), "D")
    return te.create_prim_func([X, D])


def one_of(operator: Callable[..., PrimFunc], *shapes: tuple[int, ...], **options: Any) -> Make:
    """Return a function that builds an operator with one of some shapes."""
    return lambda choose: operator(*choose(shapes), **options)


_SHAPES = ((12,), (3, 5), (2, 3, 4))
_SHAPED: dict[str, Make] = {
    "attention": one_of(ops.attention, (1, 2, 3, 4, 2), causal=True),
    "avg_pool2d": one_of(ops.avg_pool2d, (1, 2, 6, 6, 3, 2, 1), (1, 1, 5, 5, 2)),
    "batch_matmul": one_of(ops.batch_matmul, (2, 3, 4, 5), (2, 4, 4, 4)),
    "batch_norm": one_of(ops.batch_norm, (2, 3, 4), (2, 3)),
    "conv1d": one_of(ops.conv1d, (1, 2, 9, 3, 3, 1, 1), (1, 2, 11, 2, 3, 2, 1)),
    "conv2d": one_of(
        ops.conv2d,
        (1, 2, 5, 5, 2, 3, 1, 1),
        (1, 2, 6, 6, 2, 3, 2, 1),
        (1, 1, 7, 7, 2, 3, 1, 0, 2),
        (1, 4, 4, 4, 4, 3, 1, 1, 1, 2),
    ),
    "conv2d_nchwc": one_of(ops.conv2d_nchwc, (1, 4, 5, 5, 4, 3, 1, 1, 1, 2, 2)),
    "conv2d_winograd": one_of(ops.conv2d_winograd, (1, 2, 4, 4, 2, 1), (1, 1, 5, 4, 2, 1)),
    "conv2d_transpose": one_of(ops.conv2d_transpose, (1, 2, 3, 3, 2, 3, 2, 1)),
    "conv3d": one_of(ops.conv3d, (1, 1, 4, 4, 4, 2, 2, 1)),
    "dense": one_of(ops.dense, (4, 6, 5), (3, 8, 4)),
    "dense_int4": one_of(ops.dense_int4, (2, 4, 8, 4), (3, 3, 4, 2)),
    "dense_int8": one_of(ops.dense_int8, (2, 4, 8, 4), (1, 3, 6, 2), (3, 3, 4)),
    "depthwise_conv2d": one_of(ops.depthwise_conv2d, (1, 2, 6, 6, 3, 1, 1), (1, 3, 7, 7, 3, 2, 1)),
    "embedding": one_of(ops.embedding, (6, 4, 5), (5, 3, 2, 3)),
    "embedding_bag": one_of(ops.embedding_bag, (6, 4, 3, 2), (5, 3, 2, 3)),
    "group_norm": one_of(ops.group_norm, (2, 4, 3), (1, 2, 5), groups=2),
    "grouped_query_attention": one_of(
        ops.grouped_query_attention, (1, 4, 2, 2, 3, 2), (1, 2, 1, 3, 4, 2), causal=True
    ),
    "gru_cell": one_of(ops.gru_cell, (2, 3, 4), (1, 4, 3)),
    "linear_relu": one_of(ops.linear_relu, (1, 6, 8), (2, 4, 5)),
    "lstm": one_of(ops.lstm, (2, 2, 3, 4)),
    "gru": one_of(ops.gru, (3, 1, 2, 3)),
    "lstm_cell": one_of(ops.lstm_cell, (2, 3, 4), (1, 4, 3)),
    "matmul": one_of(ops.matmul, (4, 6, 5), (8, 8, 8), (7, 3, 4)),
    "matmul_bias_relu": one_of(ops.matmul_bias_relu, (4, 6, 5), (5, 3, 4)),
    "max_pool2d": one_of(ops.max_pool2d, (1, 2, 6, 6, 3, 2, 1), (1, 1, 5, 5, 2)),
    "mm_relu": one_of(ops.mm_relu, (4, 6, 5), (8, 4, 4)),
    "quantized_conv2d": one_of(
        ops.quantized_conv2d, (1, 2, 5, 5, 2, 3, 1, 1), (1, 1, 6, 6, 2, 3, 2, 1)
    ),
    "quantized_dense": one_of(ops.quantized_dense, (3, 4, 6), (4, 3, 8)),
    "row_sum": one_of(ops.row_sum, (4, 12), (3, 7)),
    "topk": one_of(ops.topk, (12,), (3, 5), (2, 3, 4), k=3),
    "transpose": one_of(ops.transpose, (4, 6), (5, 3)),
}
# All others take the extents of a tensor.
OPERATORS: dict[str, Make] = {
    name: _SHAPED.get(name) or one_of(operator, *_SHAPES)
    for name, operator in ops.OPERATORS.items()
}


def tiled_convolution(choose: Choose) -> PrimFunc:
    """Return a convolution by windows of 3 x 3 in steps of one."""
    return ops.conv2d(*choose([(1, 2, 5, 6, 3, 3), (2, 2, 4, 3, 2, 3, 1, 1)]))


PROGRAMS: dict[str, Make] = {
    make.__name__: make
    for make in (
        tiled_convolution,
        matmul_relu,
        matmul_bias,
        elementwise,
        transposed,
        convolution,
        stencil,
        rows,
        pooling,
        two_outputs,
        recurrence,
    )
}

IN_PLACE = """
@T.prim_func
def in_place(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""

GUARDED = """
@T.prim_func
def guarded(A: T.Buffer((10,), "float32"), C: T.Buffer((10,), "float32")):
    B = T.alloc_buffer((10,), "float32")
    for i0, i1 in T.grid(3, 4):
        with T.block("B"):
            T.where(i0 * 4 + i1 < 10)
            vi = T.axis.spatial(10, i0 * 4 + i1)
            B[vi] = A[vi] * T.float32(2)
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = T.if_then_else(vi < 5, B[vi], B[9 - vi])
"""

JOINED = """
@T.prim_func
def joined(A: T.Buffer((4, 6), "float32"), B: T.Buffer((3, 6), "float32"),
           D: T.Buffer((7, 6), "float32")):
    C = T.alloc_buffer((7, 6), "float32")
    for i, j in T.grid(4, 6):
        with T.block("upper"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
    for i, j in T.grid(3, 6):
        with T.block("lower"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + 4, vj] = B[vi, vj]
    for i, j in T.grid(7, 6):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * T.float32(3)
"""

WIDENED = """
@T.prim_func
def widened(A: T.Buffer((4, 8), "int8"), B: T.Buffer((6, 8), "int8"),
            C: T.Buffer((4, 6), "int32")):
    for i, j, k in T.grid(4, 6, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj, vk])
"""

LARGEST = """
@T.prim_func
def largest(numbers: T.Buffer((4, 9), "int32"), A: T.Buffer((4, 9), "float32"),
            where: T.Buffer((4,), "int32"), most: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 9):
        with T.block("most"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                where[vi] = -1
                most[vi] = T.float32(-340282346638528859811704183484516925440.0)
            number: T.let[T.int32] = T.Select(most[vi] >= A[vi, vk], where[vi], numbers[vi, vk])
            value: T.let[T.float32] = T.Select(most[vi] >= A[vi, vk], most[vi], A[vi, vk])
            where[vi] = number
            most[vi] = value
"""

MASKED = """
@T.prim_func
def masked(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("start"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.float32(0)
    for i_0, k_0, i_1, k_1 in T.grid(2, 4, 4, 2):
        with T.block("C"):
            vi = T.axis.spatial(8, i_0 * 4 + i_1)
            vk = T.axis.reduce(8, k_0 * 2 + k_1)
            C[vi] = C[vi] + T.if_then_else(vk <= vi, A[vi, vk], T.float32(0))
"""

TILED = """
@T.prim_func
def tiled(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(2, 2):
        with T.block("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            T.writes(B[vi * 4 : vi * 4 + 4, vj * 4 : vj * 4 + 4])
            for x, y in T.grid(4, 4):
                with T.block("B"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    T.reads(A[vi * 4 + vx, vj * 4 + vy])
                    T.writes(B[vi * 4 + vx, vj * 4 + vy])
                    B[vi * 4 + vx, vj * 4 + vy] = A[vi * 4 + vx, vj * 4 + vy] + T.float32(1)
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi] * T.float32(2)
"""


def script(text: str) -> Make:
    func = parse(text)
    return lambda _: func


SCRIPTS: dict[str, Make] = {
    "in_place": script(IN_PLACE),
    "guarded": script(GUARDED),
    "joined": script(JOINED),
    "widened": script(WIDENED),
    "largest": script(LARGEST),
    "masked": script(MASKED),
    "tiled": script(TILED),
}


def _of_kind(name: str) -> Make:
    return lambda choose: parse(text_of(name, choose))


KINDS: dict[str, Make] = {name: _of_kind(name) for name in TEXTS}

WORKLOADS: dict[str, Make] = {**OPERATORS, **PROGRAMS, **SCRIPTS, **KINDS}
