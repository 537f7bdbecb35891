"""The programs of the slides on tensor expressions, as they are printed.

The slides import TVM as `tvm` or `t`. Where a slide is no Python, a comment has its line.
"""

from __future__ import annotations

DOT = """
m, n, h = tvm.var('m'), tvm.var('n'), tvm.var('h')
A = tvm.placeholder((m, h), name='A')
B = tvm.placeholder((n, h), name='B')
k = tvm.reduce_axis((0, h), name='k')
C = tvm.compute((m, n), lambda i, j: tvm.sum(A[i, k] * B[j, k], axis=k))
"""

DOT_BY_ITS_SHORT_NAME = """
C = t.compute((m, n),
    lambda i, j: t.sum(A[i, k] * B[j, k], axis=k))
"""

AFFINE_TRANSFORMATION = """
out = tvm.compute((n, m), lambda i, j: tvm.sum(data[i, k] * w[j, k], k))
out = tvm.compute((n, m), lambda i, j: out[i, j] + bias[i])
"""

CONVOLUTION = """
out = tvm.compute((c, h, w_),
    lambda i, x, y: tvm.sum(data[kc,x+kx,y+ky] * w[i,kx,ky], [kx,ky,kc]))
"""
"""The slide calls the width `w`, too."""

# out = tvm.compute(shape, lambda *i: tvm.max(0, out(*i))
RELU = """
out = tvm.compute(shape, lambda *i: tvm.max(0, out(*i)))
"""

SCHEDULE = """
C = tvm.compute((n,), lambda i: A[i] + B[i])
s = tvm.create_schedule(C.op)
"""

SPLIT = (
    SCHEDULE
    + """
xo, xi = s[C].split(s[C].axis[0], factor=32)
"""
)

RECORDER = """
s[C].recorder(xi, xo)
"""

# s[C].recorder(xi, xo)
REORDER = (
    SPLIT
    + """
s[C].reorder(xi, xo)
"""
)

# s[C].bind(xo, tvm.thread_axis("blockIdx.x")
# s[C].bind(xi, tvm.thread_axis("threadIdx.x")
BIND = (
    REORDER
    + """
s[C].bind(xo, tvm.thread_axis("blockIdx.x"))
s[C].bind(xi, tvm.thread_axis("threadIdx.x"))
"""
)

LOOPS = {
    "SCHEDULE": """
for i in range(n):
    C[i] = A[i] + B[i]
""",
    "SPLIT": """
for xo in range(ceil(n / 32)):
    for xi in range(32):
        if xo * 32 + xi < n:
            C[xo * 32 + xi] = A[xo * 32 + xi] + B[xo * 32 + xi]
""",
    "REORDER": """
for xi in range(32):
    for xo in range(ceil(n / 32)):
        if xo * 32 + xi < n:
            C[xo * 32 + xi] = A[xo * 32 + xi] + B[xo * 32 + xi]
""",
    "BIND": """
for xi in T.thread_binding(32, thread="threadIdx.x"):
    for xo in T.thread_binding(ceil(n / 32), thread="blockIdx.x"):
        if xo * 32 + xi < n:
            C[xo * 32 + xi] = A[xo * 32 + xi] + B[xo * 32 + xi]
""",
}
"""The loops beside each program, in C on the slides, which leave the loops of threads out."""

RECURRENCE = """
s_update = tvm.compute((m, n), lambda t, i: s_state[t-1, i] + X[t, i])

Y = tvm.scan(s_init, s_update, s_state, inputs=[X])
"""

INTRINSIC = """
w, x = t_placeholder((8, 8)), t_placeholder((8, 8))
k = t_reduce_axis((0, 8))
y = t.compute((8, 8), lambda i, j:
               t.sum(w[i, k] * x[j, k], axis=k))

def gemm_intrin_lower(inputs, outputs):
   ww_ptr = inputs[0].access_ptr("r")
   xx_ptr = inputs[1].access_ptr("r")
   zz_ptr = outputs[0].access_ptr("w")
   compute = t.hardware_intrin("gemm8x8", ww_ptr, xx_ptr, zz_ptr)
   reset = t.hardware_intrin("fill_zero", zz_ptr)
   update = t.hardware_intrin("fuse_gemm8x8_add", ww_ptr, xx_ptr, zz_ptr)
   return compute, reset, update

gemm8x8 = t.decl_tensor_intrin(y.op, gemm_intrin_lower)
"""
