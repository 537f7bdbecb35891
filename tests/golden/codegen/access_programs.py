"""Programs of accesses of every kind: contiguous, strided, scattered, masked and in registers."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.golden.codegen.scripts import script


def transposed(rows: int, columns: int) -> PrimFunc:
    """Return `B[j, i] = A[i, j] + A[i, j]`, its rows unrolled around vectors of columns."""
    A = te.placeholder((rows, columns), "float32", name="A")
    B = te.compute((columns, rows), lambda j, i: A[i, j] + A[i, j], name="B")
    schedule = Schedule(te.create_prim_func([A, B]))
    j, i = schedule.get_loops("B")
    schedule.reorder(i, j)
    schedule.unroll(i)
    schedule.vectorize(j)
    return schedule.func


def transposed_tiles() -> PrimFunc:
    """One tile of the width of a vector, and a column that is copied alone."""
    return transposed(8, 9)


def transposed_strips() -> PrimFunc:
    """A loop over tiles, of which none is full, and a rest that is narrower."""
    return transposed(5, 28)


def transposed_wide_tile() -> PrimFunc:
    """A tile of more rows than a granule of a register has lanes, some of which are missing."""
    return transposed(11, 16)


def transposed_bytes() -> PrimFunc:
    return script(
        "for i in T.unroll(16):\n    for j in T.vectorized(16):\n        B[j, i] = A[i, j]",
        A="16 16 int8",
        B="16 16 int8",
    )


def strided_loads() -> PrimFunc:
    """Strides of 2 and 3 are picked from whole vectors; one of 5 is a gather."""
    return script(
        """
for i in T.vectorized(20):
    B[i] = A[2 * i] + A[3 * i + 1]
for i in T.vectorized(8):
    B[i + 20] = A[5 * i]
""",
        A="64 float32",
        B="28 float32",
    )


def strided_load_under_a_mask() -> PrimFunc:
    return script(
        """
for i in T.vectorized(10):
    B[i] = T.if_then_else(0 < i and i < 9, A[i * 2 - 2], T.float32(-1))
""",
        A="15 float32",
        B="10 float32",
    )


def scattered_lanes() -> PrimFunc:
    """Stores at constant distances, loads from indices in memory, stores in a permutation."""
    return script(
        """
for i in T.vectorized(8):
    B[i * 3] = A[i] * T.float32(2)
for i in T.vectorized(8):
    C[i] = A[P[i]] + T.float32(1)
for i in T.vectorized(8):
    D[(i // 3) * 3 + 2 - i % 3] = A[i] - T.float32(1)
""",
        A="8 float32",
        B="24 float32",
        C="8 float32",
        D="9 float32",
        P="8 int32",
    )


def indices_of_digits() -> PrimFunc:
    """Indices with quotients and remainders of loops that are unrolled, serial and vectors."""
    return script(
        """
for i in T.unroll(4):
    for k in range(6):
        for j in T.vectorized(8):
            B[i, k, j] = A[(i * 3 + 1) // 2, (k + 1) // 2, j // 2] + A[i, k % 4, j % 4]
for i in range(2):
    C[T.Ramp(i * 4, 1, 4)] = A[i, 0, T.Ramp(0, 1, 4)] + A[i, 1, T.Ramp(0, 2, 4) // 2]
""",
        A="6 4 4 float32",
        B="4 6 8 float32",
        C="8 float32",
    )


def masked_accesses() -> PrimFunc:
    """A padding that is masked at its borders, and stores under a condition of the lanes."""
    return script(
        """
for i in T.vectorized(34):
    B[i] = T.if_then_else(1 <= i and i < 33, A[i - 1], T.float32(0))
for i in T.vectorized(16):
    if A[i] > T.float32(0):
        C[i] = A[i]
    else:
        C[i] = -A[i + 16]
        D[i * 2] = A[i]
""",
        A="32 float32",
        B="34 float32",
        C="16 float32",
        D="32 float32",
    )


def branches() -> PrimFunc:
    """Conditions on scalars: around statements, around loads, and around neither."""
    return script(
        """
for i in range(9):
    if A[i] > T.float32(0):
        B[i] = A[i]
    else:
        B[i] = T.float32(0)
    C[i] = T.if_then_else(A[i] < T.float32(1) and i > 2, A[i + 3], T.float32(7))
    D[i] = T.if_then_else(A[i] < T.float32(1), T.float32(2), T.float32(3))
""",
        A="12 float32",
        B="9 float32",
        C="9 float32",
        D="9 float32",
    )


def masked_register() -> PrimFunc:
    """A row that is kept in registers, of which a guard stores only a part."""
    return script(
        """
acc = T.sblock_alloc_buffer((8,), "float32", scope="local")
for j in T.vectorized(8):
    acc[j] = T.float32(0)
for k in range(5):
    for j in T.vectorized(8):
        if j < 6:
            acc[j] = acc[j] + A[k, j] * W[k]
for j in T.vectorized(8):
    B[j] = acc[j]
""",
        A="5 8 float32",
        W="5 float32",
        B="8 float32",
    )


def streams() -> PrimFunc:
    """A loop whose result is stored past the caches, where it begins at a cache line."""
    return script(
        """
for i in T.serial(4, annotations={"non_temporal": 1}):
    for j in T.vectorized(32):
        B[i, j] = T.max(A[i, j], T.float32(0))
""",
        A="4 32 float32",
        B="4 32 float32",
    )


def allocations() -> PrimFunc:
    """An intermediate row on the stack, and one that is too large for it."""
    return script(
        """
for i in range(2):
    t = T.alloc_buffer((100,), "float32")
    u = T.alloc_buffer((8192,), "float32")
    for j in range(100):
        t[j] = A[i, j] + T.float32(1)
    for j in range(8192):
        u[j] = A[i, j] * T.float32(2)
    for j in range(8192):
        B[i, j] = u[8191 - j] + t[j % 100]
""",
        A="2 8192 float32",
        B="2 8192 float32",
    )


def vectors() -> PrimFunc:
    """Vectors that the program writes itself, and a function of LLVM on them."""
    return script(
        """
for i in range(4):
    B[i, 0:8] = A[i, 0:8] * T.Broadcast(T.Cast("float32", i), 8)
    B[i, T.Ramp(0, 2, 4)] = B[i, T.Ramp(1, 2, 4)] + B[i, T.Ramp(0, 2, 4)]
    C[i] = T.call_llvm_pure_intrin("float32", "llvm.vector.reduce.fadd", T.float32(0), A[i, 0:8])
    C[i + 4] = T.call_llvm_pure_intrin("float32", "llvm.fma", A[i, 0], A[i, 1], A[i, 2])
""",
        A="4 8 float32",
        B="4 8 float32",
        C="8 float32",
    )
