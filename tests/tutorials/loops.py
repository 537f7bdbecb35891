"""The programs of the lecture on compiling models, typed in: a fused operator, and loops."""

from __future__ import annotations

_LINEAR_RELU = """
@T.prim_func
def linear_relu(
    x: T.Buffer[(1, 3072), "float32"],
    w: T.Buffer[(200, 3072), "float32"],
    out: T.Buffer[(1, 200), "float32"],
):
"""

LINEAR_RELU_AS_PRINTED = """
def linear_relu(x, w, out):
    for i in range(1):
        for j in range(200):
            out[i, j] = 0
            for k in range(3072):
                out[i, j] += x[i, k] * w[j, k]
            out[i, j] = max(out[i, j], 0)
"""

# The parameters of a program have types, and nothing else is added.
LINEAR_RELU_LOOPS = _LINEAR_RELU + LINEAR_RELU_AS_PRINTED.partition("out):\n")[2]

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


def vector_add(loops: str) -> str:
    """Return a program of loops of the lecture."""
    return _VECTOR_ADD + "".join(f"    {line}\n" for line in loops.strip().splitlines())


CODE = """
for x in range(128):
    C[x] = A[x] + B[x]
"""

SPLIT = """
x = get_loop("x")
xo, xi = split(x, 4)
"""

CODE_SPLIT = """
for xo in range(32):
    for xi in range(4):
        C[xo * 4 + xi]= A[xo * 4 + xi] + B[xo * 4 + xi]
"""

REORDER = (
    SPLIT
    + """
reorder(xi, xo)
"""
)

CODE_REORDERED = """
for xi in range(4):
    for xo in range(32):
        C[xo * 4 + xi] = A[xo * 4 + xi] + B[xo * 4 + xi]
"""

BIND = (
    REORDER
    + """
bind_thread(xo, "threadIdx.x")
bind_thread(xi, "blockIdx.x")
"""
)

# def gpu_kernel():
#     C[threadId.x * 4 + blockIdx.x] = . . .
CODE_BOUND = """
for xi in T.thread_binding(4, thread="blockIdx.x"):
    for xo in T.thread_binding(32, thread="threadIdx.x"):
        C[xo * 4 + xi] = A[xo * 4 + xi] + B[xo * 4 + xi]
"""
