"""Programs of threads on a CPU compute what they mean."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import build
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, check_against_evaluation
from tests.unit.compiler.passes.threads.programs import TRANSPOSE, program

IMPLICIT_BARRIERS_IN_A_LOOP = program(
    """
S = T.sblock_alloc_buffer((64,), scope="shared")
kept = T.sblock_alloc_buffer((1,), scope="local")
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.sblock("first"):
            v = T.axis.spatial(64, bx * 32 + tx)
            T.reads(A[v])
            T.writes(kept[0])
            kept[0] = A[v] * 2.0
        for k in range(3):
            with T.sblock("tell"):
                v = T.axis.spatial(64, bx * 32 + tx)
                T.reads(kept[0])
                T.writes(S[v])
                S[v] = kept[0] + T.Cast("float32", k)
            with T.sblock("hear"):
                v = T.axis.spatial(64, bx * 32 + tx)
                T.reads(kept[0], S[v // 32 * 32 + 31 - v % 32])
                T.writes(kept[0])
                kept[0] = kept[0] + S[v // 32 * 32 + 31 - v % 32]
        with T.sblock("last"):
            v = T.axis.spatial(64, bx * 32 + tx)
            T.reads(kept[0])
            T.writes(B[v])
            B[v] = kept[0]
"""
)


LOCAL_MEMORY_OVER_SEVERAL_LOOPS = program(
    """
kept = T.sblock_alloc_buffer((2,), scope="local")
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for i in range(2):
            with T.sblock("a"):
                T.reads(A[bx * 32 + tx])
                T.writes(kept[i])
                kept[i] = A[bx * 32 + tx] * 2.0
    with T.sblock("by_all_threads"):
        T.reads(kept[0])
        T.writes(kept[0])
        kept[0] = kept[0] + 1.0
    for ty in T.thread_binding(32, thread="threadIdx.x"):
        with T.sblock("b"):
            T.reads(kept[0:2])
            T.writes(B[bx * 32 + ty])
            B[bx * 32 + ty] = kept[1] + kept[0]
"""
)


SCHEDULED_MATMUL = program(
    """
A_shared = T.sblock_alloc_buffer((32, 32), scope="shared")
C_local = T.sblock_alloc_buffer((32, 32), scope="local")
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for vx in T.thread_binding(2, thread="vthread.x"):
        for ty in T.thread_binding(4, thread="threadIdx.y"):
            for tx in T.thread_binding(8, thread="threadIdx.x"):
                for ko in range(4):
                    for a0 in range(4):
                        for a1 in T.thread_binding(4, thread="threadIdx.y"):
                            for a2 in T.thread_binding(8, thread="threadIdx.x"):
                                with T.sblock("A_shared"):
                                    v0 = T.axis.spatial(32, bx * 16 + a0 * 4 + a1)
                                    v1 = T.axis.spatial(32, ko * 8 + a2)
                                    T.reads(A[v0, v1])
                                    T.writes(A_shared[v0, v1])
                                    A_shared[v0, v1] = A[v0, v1]
                    for ki, i, j in T.grid(8, 2, 4):
                        with T.sblock("C"):
                            vi = T.axis.spatial(32, bx * 16 + vx * 8 + ty * 2 + i)
                            vj = T.axis.spatial(32, tx * 4 + j)
                            vk = T.axis.reduce(32, ko * 8 + ki)
                            T.reads(A_shared[vi, vk], B[vk, vj])
                            T.writes(C_local[vi, vj])
                            with T.init():
                                C_local[vi, vj] = T.float32(0)
                            C_local[vi, vj] = C_local[vi, vj] + A_shared[vi, vk] * B[vk, vj]
                for i, j in T.grid(2, 4):
                    with T.sblock("C_out"):
                        vi = T.axis.spatial(32, bx * 16 + vx * 8 + ty * 2 + i)
                        vj = T.axis.spatial(32, tx * 4 + j)
                        T.reads(C_local[vi, vj])
                        T.writes(C[vi, vj])
                        C[vi, vj] = C_local[vi, vj]
""",
    ", ".join(f'{name}: T.Buffer((32, 32), "float32")' for name in "ABC"),
)


CROSS_THREAD_SUM = program(
    """
total = T.sblock_alloc_buffer((8,), scope="local")
for bx in T.thread_binding(8, thread="blockIdx.x"):
    for k0 in range(3):
        for tx in T.thread_binding(24, thread="threadIdx.x"):
            with T.sblock("sum"):
                v = T.axis.spatial(8, bx)
                k = T.axis.reduce(64, k0 * 24 + tx)
                T.where(k0 * 24 + tx < 64)
                T.reads(A[v, k])
                T.writes(total[v])
                with T.init():
                    total[v] = T.float32(0)
                total[v] = total[v] + A[v, k]
    with T.sblock("out"):
        v = T.axis.spatial(8, bx)
        T.reads(total[v])
        T.writes(B[v])
        B[v] = total[v] * 2.0
""",
    'A: T.Buffer((8, 64), "float32"), B: T.Buffer((8,), "float32")',
)


CROSS_THREAD_ARGMAX = program(
    """
for bx in T.thread_binding(8, thread="blockIdx.x"):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        for k0 in range(2):
            with T.sblock("argmax"):
                v = T.axis.spatial(8, bx)
                k = T.axis.reduce(64, k0 * 32 + tx)
                T.reads(A[v, k])
                T.writes(I[v], V[v])
                with T.init():
                    I[v] = -1
                    V[v] = T.min_value("float32")
                i: T.let[T.int32] = T.Select(V[v] >= A[v, k], I[v], k)
                x: T.let[T.float32] = T.Select(V[v] >= A[v, k], V[v], A[v, k])
                I[v] = i
                V[v] = x
""",
    'A: T.Buffer((8, 64), "float32"), I: T.Buffer((8,), "int32"), V: T.Buffer((8,), "float32")',
)


PARTIAL_SUMS_PER_THREAD = program(
    """
part = T.sblock_alloc_buffer((16,), scope="local")
for tx in T.thread_binding(16, thread="threadIdx.x"):
    for k in range(4):
        with T.sblock("part"):
            v = T.axis.spatial(16, tx)
            r = T.axis.reduce(4, k)
            T.reads(A[v * 4 + r])
            T.writes(part[v])
            with T.init():
                part[v] = T.float32(0)
            part[v] = part[v] + A[v * 4 + r]
for ty in T.thread_binding(16, thread="threadIdx.x"):
    with T.sblock("sum"):
        v = T.axis.reduce(16, ty)
        T.reads(part[v])
        T.writes(B[0])
        with T.init():
            B[0] = T.float32(0)
        B[0] = B[0] + part[v]
"""
)


A_NAME_ACROSS_A_BARRIER = program(
    """
S = T.sblock_alloc_buffer((64,), scope="shared")
for tx in T.thread_binding(64, thread="threadIdx.x"):
    with T.sblock("a"):
        v = T.axis.spatial(64, tx)
        T.reads(A[v], S[63 - v])
        T.writes(B[v], S[v])
        x: T.let[T.float32] = A[v] * 2.0
        S[v] = x
        T.tvm_storage_sync("shared")
        B[v] = x + S[63 - v]
"""
)


A_BLOCK_OF_ITS_OWN_BETWEEN = program(
    """
S = T.sblock_alloc_buffer((64,), scope="shared")
for bx in T.thread_binding(2, thread="blockIdx.x"):
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.sblock("a"):
            v = T.axis.spatial(64, bx * 32 + tx)
            T.reads(A[v])
            T.writes(S[v])
            S[v] = A[v]
    with T.sblock("once"):
        T.reads(S[bx * 32])
        T.writes(S[bx * 32])
        S[bx * 32] = S[bx * 32] + 1.0
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        with T.sblock("b"):
            v = T.axis.spatial(64, bx * 32 + tx)
            T.reads(S[bx * 32])
            T.writes(B[v])
            B[v] = S[bx * 32]
"""
)


PROGRAMS = {
    "a tile is turned around in shared memory": TRANSPOSE,
    "threads wait in every iteration": IMPLICIT_BARRIERS_IN_A_LOOP,
    "local memory outlives a loop over threads": LOCAL_MEMORY_OVER_SEVERAL_LOOPS,
    "threads fetch together and virtual threads compute": SCHEDULED_MATMUL,
    "threads add up to one number": CROSS_THREAD_SUM,
    "threads look for the greatest": CROSS_THREAD_ARGMAX,
    "partial sums are added up": PARTIAL_SUMS_PER_THREAD,
    "a name lives across a barrier": A_NAME_ACROSS_A_BARRIER,
    "what stands outside of the threads is done once": A_BLOCK_OF_ITS_OWN_BETWEEN,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_threads_is_what_it_evaluates_to(name: str) -> None:
    check_against_evaluation(PROGRAMS[name])


def test_programs_of_threads_are_what_numpy_computes() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((32, 32)).astype("float32") for _ in range(2))
    c = np.empty((32, 32), np.float32)
    build(SCHEDULED_MATMUL, ONE_CORE)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)

    x = rng.standard_normal((64, 64)).astype("float32")
    turned = np.empty_like(x)
    build(TRANSPOSE, ONE_CORE)(x, turned)
    np.testing.assert_array_equal(turned, x.T)

    rows = rng.standard_normal((8, 64)).astype("float32")
    places, most = np.empty(8, np.int32), np.empty(8, np.float32)
    build(CROSS_THREAD_ARGMAX, ONE_CORE)(rows, places, most)
    np.testing.assert_array_equal(places, rows.argmax(1))
    np.testing.assert_array_equal(most, rows.max(1))

    sums = np.empty(8, np.float32)
    build(CROSS_THREAD_SUM, ONE_CORE)(rows, sums)
    np.testing.assert_allclose(sums, 2 * rows.sum(1), rtol=1e-4, atol=1e-4)
