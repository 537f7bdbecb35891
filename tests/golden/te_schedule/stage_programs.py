"""Schedules of tensor expressions, one for each step of a stage, with what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopwright import te

Array = NDArray[Any]


@dataclass(frozen=True)
class StageProgram:
    """A schedule, its parameters, and its outputs for arrays of its inputs."""

    schedule: te.TensorSchedule
    args: list[te.Tensor]
    reference: Callable[..., Sequence[Array]]


def _sum_of_two(n: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return A, B, te.compute((n,), lambda i: A[i] + B[i], name="C")


def _product(m: int, n: int, depth: int) -> tuple[te.Tensor, te.Tensor, te.Tensor, te.ReduceAxis]:
    A, B = te.placeholder((m, depth), name="A"), te.placeholder((depth, n), name="B")
    k = te.reduce_axis((0, depth), "k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C, k


def split_with_a_guard() -> StageProgram:
    A, B, C = _sum_of_two(100)
    s = te.create_schedule(C.op)
    xo, xi = s[C].split(C.op.axis[0], factor=32)
    s[C].reorder(xi, xo)
    s[C].bind(xo, te.thread_axis("blockIdx.x"))
    s[C].bind(xi, te.thread_axis((0, 32), "threadIdx.x"))
    return StageProgram(s, [A, B, C], lambda a, b: [a + b])


def split_by_parts() -> StageProgram:
    A, B, C = _sum_of_two(30)
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], nparts=4)
    s[C].unroll(inner)
    s[C].pragma(outer, "auto_unroll_max_step", 16)
    return StageProgram(s, [A, B, C], lambda a, b: [a + b])


def tile_and_fuse() -> StageProgram:
    A = te.placeholder((20, 30), name="A")
    B = te.compute((20, 30), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B.op)
    xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], 8, 10)
    s[B].parallel(s[B].fuse(xo, yo))
    s[B].unroll(xi)
    s[B].vectorize(yi)
    return StageProgram(s, [A, B], lambda a: [a * 2])


def compute_at() -> StageProgram:
    A = te.placeholder((34,), name="A")
    B = te.compute((34,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((32,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
    s = te.create_schedule(C.op)
    # Where B is computed is decided last: its loops are split in any case.
    _, inner = s[B].split(B.op.axis[0], factor=4)
    s[B].vectorize(inner)
    outer, _ = s[C].split(C.op.axis[0], factor=8)
    s[C].parallel(outer)
    s[B].compute_at(s[C], outer)
    return StageProgram(s, [A, C], lambda a: [2 * (a[:-2] + a[1:-1] + a[2:])])


def compute_inline_and_root() -> StageProgram:
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((6, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((6,), lambda i: te.sum(B[i, k], axis=k), name="C")
    D = te.compute((6,), lambda i: C[i] * 2.0, name="D")
    s = te.create_schedule(D.op)
    s[B].compute_inline()
    s[C].compute_at(s[D], D.op.axis[0])
    s[C].compute_root()
    s[C].set_scope("local")
    return StageProgram(s, [A, D], lambda a: [2 * (a + 1).sum(1)])


def cache_write_of_a_product() -> StageProgram:
    A, B, C, _ = _product(64, 48, 40)
    s = te.create_schedule(C.op)
    CC = s.cache_write(C, "global")
    mo, no, _, ni = s[C].tile(C.op.axis[0], C.op.axis[1], 32, 16)
    s[CC].compute_at(s[C], no)
    mc, nc = s[CC].op.axis
    ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
    s[CC].reorder(ko, mc, ki, nc)
    s[CC].vectorize(nc)
    s[CC].unroll(ki)
    s[C].vectorize(ni)
    s[C].parallel(mo)
    return StageProgram(s, [A, B, C], lambda a, b: [a @ b])


def threads_share_tiles() -> StageProgram:
    A, B, C, k = _product(32, 32, 16)
    s = te.create_schedule(C.op)
    AA, BB = s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])
    CC = s.cache_write(C, "local")
    by, yi = s[C].split(C.op.axis[0], factor=16)
    bx, xi = s[C].split(C.op.axis[1], factor=16)
    ty, yi = s[C].split(yi, nparts=4)
    tx, xi = s[C].split(xi, nparts=4)
    s[C].reorder(by, bx, ty, tx, yi, xi)
    threads = [te.thread_axis((0, 4), "threadIdx.y"), te.thread_axis((0, 4), "threadIdx.x")]
    s[C].bind(by, te.thread_axis("blockIdx.y"))
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(ty, threads[0])
    s[C].bind(tx, threads[1])
    s[CC].compute_at(s[C], tx)
    ko, ki = s[CC].split(k, factor=8)
    s[CC].reorder(ko, ki, *s[CC].op.axis)
    for shared in (AA, BB):
        s[shared].compute_at(s[CC], ko)
        ty, yi = s[shared].split(s[shared].op.axis[0], nparts=4)
        tx, xi = s[shared].split(s[shared].op.axis[1], nparts=4)
        s[shared].reorder(ty, tx, yi, xi)
        s[shared].bind(ty, threads[0])
        s[shared].bind(tx, threads[1])
    s[AA].storage_align(s[AA].op.axis[0], 16, 4)
    return StageProgram(s, [A, B, C], lambda a, b: [a @ b])


def rfactor() -> StageProgram:
    A = te.placeholder((64, 48), name="A")
    k = te.reduce_axis((0, 48), "k")
    B = te.compute((64,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    xo, xi = s[B].split(s[B].op.axis[0], factor=32)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.y"))
    s[B].bind(s[B].op.reduce_axis[0], te.thread_axis("threadIdx.x"))
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    return StageProgram(s, [A, B], lambda a: [a.sum(1)])


def tensorize() -> StageProgram:
    w, x = te.placeholder((8, 8), name="w"), te.placeholder((8, 8), name="x")
    r = te.reduce_axis((0, 8), "r")
    y = te.compute((8, 8), lambda i, j: te.sum(w[i, r] * x[j, r], axis=r), name="y")

    def lower(inputs: list[Any], outputs: list[Any]) -> tuple[Any, Any, Any]:
        pointers = [buffer.access_ptr("r") for buffer in (*inputs, *outputs)]
        return (
            te.hardware_intrin("gemm8x8", *pointers),
            te.hardware_intrin("fill_zero", pointers[-1]),
            te.hardware_intrin("fuse_gemm8x8_add", *pointers),
        )

    A, B = te.placeholder((32, 40), name="A"), te.placeholder((24, 40), name="B")
    k = te.reduce_axis((0, 40), "k")
    C = te.compute((32, 24), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
    ko, ki = s[C].split(k, factor=8)
    s[C].reorder(io, jo, ko, ii, ji, ki)
    s[C].tensorize(ii, te.decl_tensor_intrin(y.op, lower))
    s[C].parallel(io)
    return StageProgram(s, [A, B, C], lambda a, b: [a @ b.T])


def scan_of_two_states() -> StageProgram:
    steps, n = 6, 8
    X = te.placeholder((steps, n), name="X")
    c, h = te.placeholder((steps, n), name="c"), te.placeholder((steps, n), name="h")
    zeros = [te.compute((1, n), lambda _, i: 0.0, name=name) for name in ("c0", "h0")]
    gate = te.compute((steps, n), lambda t, i: h[t - 1, i] * X[t, i], name="gate")
    c_next = te.compute((steps, n), lambda t, i: c[t - 1, i] * 0.5 + gate[t, i], name="cn")
    h_next = te.compute((steps, n), lambda t, i: c_next[t, i] + X[t, i], name="hn")
    C, H = te.scan(zeros, [c_next, h_next], [c, h], inputs=[X], name="S")
    s = te.create_schedule(C.op)
    s[gate].compute_at(s[c_next], c_next.op.axis[0])
    s[gate].vectorize(gate.op.axis[1])
    _, inner = s[c_next].split(c_next.op.axis[1], factor=4)
    s[c_next].vectorize(inner)
    s[zeros[0]].vectorize(zeros[0].op.axis[1])

    def reference(x: Array) -> list[Array]:
        cs, hs = [np.zeros(n)], [np.zeros(n)]
        for t in range(1, steps):
            cs.append(cs[-1] * 0.5 + hs[-1] * x[t])
            hs.append(cs[-1] + x[t])
        return [np.array(cs), np.array(hs)]

    return StageProgram(s, [X, C, H], reference)


def values_and_positions() -> StageProgram:
    A = te.placeholder((6, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    argmax = te.comm_reducer(
        lambda x, y: (
            te.if_then_else(x[1] >= y[1], x[0], y[0]),
            te.if_then_else(x[1] >= y[1], x[1], y[1]),
        ),
        lambda index, value: (te.const(-1, index), te.min_value(value)),
        name="argmax",
    )
    at, best = te.compute((6,), lambda i: argmax((k.var, A[i, k]), axis=k), name="M")
    s = te.create_schedule(at.op)
    cached = s.cache_write([at, best], "local")
    outer, _ = s[at].split(at.op.axis[0], factor=4)
    s[cached[0]].compute_at(s[at], outer)
    return StageProgram(s, [A, at, best], lambda a: [a.argmax(1), a.max(1)])


PROGRAMS: dict[str, Callable[[], StageProgram]] = {
    make.__name__: make
    for make in (
        split_with_a_guard,
        split_by_parts,
        tile_and_fuse,
        compute_at,
        compute_inline_and_root,
        cache_write_of_a_product,
        threads_share_tiles,
        rfactor,
        tensorize,
        scan_of_two_states,
        values_and_positions,
    )
}
