"""The programs of the lecture on compiling models, typed in: a fused operator, and loops."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]


def linear_relu(x: Array, w: Array, out: Array) -> None:
    """The reference of the lecture: plain loops on NumPy arrays."""
    for i in range(x.shape[0]):
        for j in range(w.shape[0]):
            out[i, j] = 0
            for k in range(x.shape[1]):
                out[i, j] += x[i, k] * w[j, k]
            out[i, j] = max(out[i, j], 0)


LINEAR_RELU_LOOPS = """
@T.prim_func
def linear_relu(
    x: T.Buffer[(1, 3072), "float32"],
    w: T.Buffer[(200, 3072), "float32"],
    out: T.Buffer[(1, 200), "float32"],
):
    for i in range(1):
        for j in range(200):
            out[i, j] = T.float32(0)
            for k in range(3072):
                out[i, j] = out[i, j] + x[i, k] * w[j, k]
            out[i, j] = T.max(out[i, j], T.float32(0))
"""

LINEAR_RELU_BLOCKS = """
@T.prim_func
def linear_relu(
    x: T.Buffer[(1, 3072), "float32"],
    w: T.Buffer[(200, 3072), "float32"],
    out: T.Buffer[(1, 200), "float32"],
):
    T.func_attr({"global_symbol": "linear_relu", "tir.noalias": True})
    linear = T.alloc_buffer((1, 200), "float32")
    for i, j, k in T.grid(1, 200, 3072):
        with T.block("linear"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                linear[vi, vj] = T.float32(0)
            linear[vi, vj] = linear[vi, vj] + x[vi, vk] * w[vj, vk]
    for i, j in T.grid(1, 200):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            out[vi, vj] = T.max(linear[vi, vj], T.float32(0))
"""

# The same in one nest, as the lecture writes it: each element is rectified as soon as it is summed.
LINEAR_RELU_FUSED = """
@T.prim_func
def linear_relu(
    x: T.Buffer[(1, 3072), "float32"],
    w: T.Buffer[(200, 3072), "float32"],
    out: T.Buffer[(1, 200), "float32"],
):
    T.func_attr({"global_symbol": "linear_relu", "tir.noalias": True})
    linear = T.alloc_buffer((1, 200), "float32")
    for i, j in T.grid(1, 200):
        with T.block("linear_init"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            T.writes(linear[vi, vj])
            linear[vi, vj] = T.float32(0)
        for k in range(3072):
            with T.block("linear_update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(linear[vi, vj], x[vi, vk], w[vj, vk])
                T.writes(linear[vi, vj])
                linear[vi, vj] = linear[vi, vj] + x[vi, vk] * w[vj, vk]
        with T.block("relu"):
            vi = T.axis.spatial(1, 0)
            vj = T.axis.spatial(200, j)
            T.reads(linear[vi, vj])
            T.writes(out[vi, vj])
            out[vi, vj] = T.max(linear[vi, vj], T.float32(0))
"""

_VECTOR_ADD = """
@T.prim_func
def vector_add(
    A: T.Buffer[(128,), "float32"],
    B: T.Buffer[(128,), "float32"],
    C: T.Buffer[(128,), "float32"],
):
"""

VECTOR_ADD = (
    _VECTOR_ADD
    + """
    for x in range(128):
        with T.block("C"):
            vx = T.axis.spatial(128, x)
            C[vx] = A[vx] + B[vx]
"""
)

VECTOR_ADD_SPLIT = (
    _VECTOR_ADD
    + """
    for xo in range(32):
        for xi in range(4):
            with T.block("C"):
                vx = T.axis.spatial(128, xo * 4 + xi)
                C[vx] = A[vx] + B[vx]
"""
)

VECTOR_ADD_REORDERED = (
    _VECTOR_ADD
    + """
    for xi in range(4):
        for xo in range(32):
            with T.block("C"):
                vx = T.axis.spatial(128, xo * 4 + xi)
                C[vx] = A[vx] + B[vx]
"""
)

VECTOR_ADD_BOUND = (
    _VECTOR_ADD
    + """
    for xi in T.thread_binding(4, thread="blockIdx.x"):
        for xo in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("C"):
                vx = T.axis.spatial(128, xo * 4 + xi)
                C[vx] = A[vx] + B[vx]
"""
)
