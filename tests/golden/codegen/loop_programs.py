"""Programs of loops of every kind: serial, vectorized, unrolled, in tiles and on threads."""

from __future__ import annotations

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.golden.codegen.scripts import script


def scalar_loops() -> PrimFunc:
    return ops.matmul(3, 5, 7)


def vector_loop() -> PrimFunc:
    """A loop of many vectors, of which several make a step, and a rest of shorter vectors."""
    return script(
        "for i in T.vectorized(301):\n    B[i] = A[i] * T.float32(2) + C[0]",
        A="301 float32",
        B="301 float32",
        C="1 float32",
    )


def guarded_tiles() -> PrimFunc:
    """A tile that does not divide the extent, in vectors, in unrolled and in serial steps."""
    blocks = []
    for name, kind in (("B", "T.vectorized"), ("C", "T.unroll"), ("D", "range")):
        blocks.append(f"""
for i in range(3):
    for j in {kind}(8):
        with T.sblock("{name}"):
            v = T.axis.spatial(19, i * 8 + j)
            T.where(i * 8 + j < 19)
            T.reads(A[v])
            T.writes({name}[v])
            {name}[v] = A[v] + T.float32(1)""")
    shape = "19 float32"
    return script("".join(blocks), A=shape, B=shape, C=shape, D=shape)


def loop_of_varying_extent() -> PrimFunc:
    return script(
        "for i in range(6):\n    for j in range(i + 1):\n        B[i, j] = A[i, j] + T.float32(1)",
        A="6 6 float32",
        B="6 6 float32",
    )


def register_tile() -> PrimFunc:
    """A product in a tile of 2 rows and 16 columns that stays in registers over the reduction."""
    schedule = Schedule(ops.matmul(4, 32, 24))
    i, j, k = schedule.get_loops("C")
    i_0, i_1 = schedule.split(i, [None, 2])
    j_0, j_1 = schedule.split(j, [None, 16])
    schedule.reorder(i_0, j_0, k, i_1, j_1)
    schedule.unroll(i_1)
    schedule.vectorize(j_1)
    schedule.decompose_reduction("C", k)
    return schedule.func


def parallel_loop() -> PrimFunc:
    """Rows on threads, each with an intermediate row in its own part of the workspace."""
    return script(
        """
for i in T.parallel(32):
    t = T.alloc_buffer((8192,), "float32")
    for j in range(8192):
        t[j] = A[i, j] + T.float32(1)
    for j in range(8192):
        B[i, j] = t[8191 - j] * T.float32(2)
""",
        A="32 8192 float32",
        B="32 8192 float32",
    )


def parallel_loop_in_a_loop() -> PrimFunc:
    """A launch in each iteration, which hands the counter of the outer loop to its tasks."""
    return script(
        """
for k in range(3):
    for i in T.parallel(64, annotations={"dynamic_partition": 4}):
        for j in range(1024):
            B[i, j] = B[i, j] + A[i, j + k]
""",
        A="64 1026 float32",
        B="64 1024 float32",
    )


def parallel_loop_with_choices() -> PrimFunc:
    """A loop of vectors, conditions and functions, which the estimate of its work weighs."""
    return script(
        """
for i in T.parallel(64):
    for j in T.vectorized(1024):
        if A[i, j] > T.float32(0):
            B[i, j] = T.exp(A[i, j])
        else:
            B[i, j] = T.if_then_else(i > 3, A[i - 3, j], T.float32(2)) * A[i, j] + T.float32(1)
""",
        A="64 1024 float32",
        B="64 1024 float32",
    )


def parallel_loop_too_small_to_launch() -> PrimFunc:
    return script(
        "for i in T.parallel(8):\n    B[i] = A[i] + T.float32(1)", A="8 float32", B="8 float32"
    )
