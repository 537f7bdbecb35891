"""Programs whose threads share memory or reduce together; `{n}` and `{m}` are extents."""

from __future__ import annotations

BY_THREADS = """\
    for i in T.thread_binding({n}, thread="threadIdx.x"):
"""


def row_of_a_thread(block: str, store: str, extent: str = "{n}") -> str:
    """Return the loop in which thread `i` computes its row of a buffer."""
    return f"""\
        for j in range({extent}):
            with T.block("{block}"):
                vi, vj = T.axis.remap("SS", [i, j])
                {store}
"""


TRANSPOSED_BY_THREADS = (
    """
A: T.Buffer(({n}, {n}), "float32"), C: T.Buffer(({n}, {n}), "float32")):
    B = T.alloc_buffer(({n}, {n}), "float32", scope="shared")
"""
    + BY_THREADS
    + row_of_a_thread("B", "B[vi, vj] = A[vi, vj] + T.float32(1)")
    + BY_THREADS
    + row_of_a_thread("C", "C[vi, vj] = B[vj, vi] * T.float32(2)")
)

SHARED_BY_BLOCKS = """
A: T.Buffer((2, {n}), "float32"), D: T.Buffer((2, {n}), "float32"),
         C: T.Buffer((2, {n}), "float32")):
    B = T.alloc_buffer((2, {n}), "float32", scope="shared")
    E = T.alloc_buffer((2, {n}), "float32", scope="shared")
    for b in T.thread_binding(2, thread="blockIdx.x"):
        for i in T.thread_binding({n}, thread="threadIdx.x"):
            with T.block("B"):
                vb, vi = T.axis.remap("SS", [b, i])
                B[vb, vi] = A[vb, vi] + T.float32(1)
        for i in T.thread_binding({n}, thread="threadIdx.x"):
            with T.block("E"):
                vb, vi = T.axis.remap("SS", [b, i])
                E[vb, vi] = D[vb, vi] * T.float32(2)
    for b, i in T.grid(2, {n}):
        with T.block("C"):
            vb, vi = T.axis.remap("SS", [b, i])
            C[vb, vi] = B[vb, {n} - 1 - vi] + E[vb, vi]
"""

SHARED_ROWS = (
    """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n},), "float32"),
         D: T.Buffer(({n},), "float32")):
    B = T.alloc_buffer(({n}, {m}), "float32", scope="shared")
    S = T.alloc_buffer(({n},), "float32", scope="shared")
"""
    + BY_THREADS
    + row_of_a_thread("B", "B[vi, vj] = A[vi, vj] + T.float32(1)", extent="{m}")
    + """\
        for j in range({m}):
            with T.block("S"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + B[vi, vj]
    for i, k in T.grid({n}, {n}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + S[vk]
    for i in range({n}):
        with T.block("D"):
            vi = T.axis.spatial({n}, i)
            D[vi] = S[{n} - 1 - vi] + B[0, 0]
"""
)

SHARED_PAIR = (
    """
A: T.Buffer(({n}, {n}), "float32"), C: T.Buffer(({n}, {n}), "float32"),
         D: T.Buffer(({n}, {n}), "float32")):
    B = T.alloc_buffer(({n}, {n}), "float32", scope="shared")
    E = T.alloc_buffer(({n}, {n}), "float32", scope="shared")
"""
    + BY_THREADS
    + row_of_a_thread("B", "B[vi, vj] = A[vi, vj] + T.float32(1)")
    + row_of_a_thread("E", "E[vi, vj] = A[vj, vi] * T.float32(2)")
    + BY_THREADS
    + row_of_a_thread("C", "C[vi, vj] = E[vi, vj] + B[vj, 0]")
    + """\
    for i, j in T.grid({n}, {n}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vj, vi] + E[vi, {n} - 1 - vj]
"""
)

SHARED_STEPS = """
A: T.Buffer(({m}, {n}), "float32"), C: T.Buffer(({m}, {n}), "float32")):
    B = T.alloc_buffer(({m}, {n}), "float32", scope="shared")
    for k in range({m}):
        for i in T.thread_binding({n}, thread="threadIdx.x"):
            with T.block("B"):
                vk, vi = T.axis.remap("SS", [k, i])
                B[vk, vi] = A[vk, vi] + T.float32(1)
        for i in T.thread_binding({n}, thread="threadIdx.x"):
            with T.block("C"):
                vk, vi = T.axis.remap("SS", [k, i])
                C[vk, vi] = B[vk, {n} - 1 - vi] * T.float32(2)
"""

LOCAL_SUMS = """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n},), "float32")):
    L = T.alloc_buffer(({n},), "float32", scope="local")
    for i in T.thread_binding({n}, thread="threadIdx.x"):
        for k in range({m}):
            with T.block("L"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    L[vi] = T.float32(0)
                L[vi] = L[vi] + A[vi, vk]
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = L[vi] * T.float32(2)
"""

REDUCED_BY_THREADS = """
A: T.Buffer(({n}, 8), "float32"), B: T.Buffer(({n},), "float32"),
         C: T.Buffer(({n},), "float32")):
    for i in range({n}):
        for k_0 in range(2):
            for k_1 in T.thread_binding(4, thread="threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial({n}, i)
                    vk = T.axis.reduce(8, k_0 * 4 + k_1)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
    for i in range({n}):
        with T.block("C"):
            vi = T.axis.spatial({n}, i)
            C[vi] = B[vi] + T.float32(1)
"""

PARALLEL_ROWS = """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n}, {m}), "float32")):
    B = T.alloc_buffer(({n}, {m}), "float32")
    for i in T.parallel({n}):
        for j in T.vectorized({m}):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(3)
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[{n} - 1 - vi, vj] + B[vi, vj]
"""

THREADS = {
    "transposed_by_threads": TRANSPOSED_BY_THREADS,
    "shared_by_blocks": SHARED_BY_BLOCKS,
    "shared_rows": SHARED_ROWS,
    "shared_pair": SHARED_PAIR,
    "shared_steps": SHARED_STEPS,
    "local_sums": LOCAL_SUMS,
    "reduced_by_threads": REDUCED_BY_THREADS,
    "parallel_rows": PARALLEL_ROWS,
}
