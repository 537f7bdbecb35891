"""Programs of kinds that are difficult to schedule.

Predicates, producers that compute elements twice, extents that depend on loops, blocks in blocks,
views, symbolic extents, int64 loops, reducers that do not commute, indices loaded from memory, and
threads. `{n}` and `{m}` are small extents.
"""

from __future__ import annotations

from tests.property.generators.choice import Choose
from tests.property.generators.threads import THREADS

HEAD = "@T.prim_func\ndef main("

# Predicates, and producers that compute more than is read, or twice

RAGGED = """
A: T.Buffer(({m}, 10), "float32"), C: T.Buffer(({m},), "float32"),
         D: T.Buffer(({m},), "float32")):
    for i, k_0, k_1 in T.grid({m}, 4, 3):
        with T.block("C"):
            T.where(k_0 * 3 + k_1 < 10)
            vi = T.axis.spatial({m}, i)
            vk = T.axis.reduce(10, k_0 * 3 + k_1)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
    for i_0, i_1 in T.grid(3, 4):
        with T.block("D"):
            T.where(i_0 * 4 + i_1 < {m})
            vi = T.axis.spatial({m}, i_0 * 4 + i_1)
            D[vi] = C[vi] * T.float32(2)
"""

OVERCOMPUTED = """
A: T.Buffer((14,), "float32"), C: T.Buffer((12,), "float32")):
    B = T.alloc_buffer((14,), "float32")
    for i_0 in range(3):
        for ax in range(6):
            with T.block("B"):
                vi = T.axis.spatial(14, i_0 * 4 + ax)
                B[vi] = A[vi] * T.float32(2)
        for i_1 in range(4):
            with T.block("C"):
                vi = T.axis.spatial(12, i_0 * 4 + i_1)
                C[vi] = B[vi] + B[vi + 2]
"""

BORDERS = """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n}, {m}), "float32")):
    B = T.alloc_buffer(({n} + 2, {m}), "float32")
    for i, j in T.grid({n} + 2, {m}):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(1 <= vi and vi < {n} + 1, A[vi - 1, vj], T.float32(0))
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 2, vj]
"""

# Extents that depend on loops

TRIANGLE = """
A: T.Buffer(({n}, {n}), "float32"), C: T.Buffer(({n}, {n}), "float32")):
    for i in range({n}):
        for j in range(i + 1):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vj, vi] + T.float32(1)
        for j in range({n} - i - 1):
            with T.block("zero"):
                vi = T.axis.spatial({n}, i)
                vj = T.axis.spatial({n}, i + 1 + j)
                C[vi, vj] = T.float32(0)
"""

PREFIX_SUMS = """
A: T.Buffer(({n}, {n}), "float32"), C: T.Buffer(({n},), "float32"),
         D: T.Buffer(({n},), "float32")):
    for i in range({n}):
        for k in range(i + 1):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
    for i in range({n}):
        with T.block("D"):
            vi = T.axis.spatial({n}, i)
            D[vi] = C[vi] * T.float32(2)
"""

COUNTED = """
counts: T.Buffer(({n},), "int32"), A: T.Buffer(({n}, {m}), "float32"),
         C: T.Buffer(({n},), "float32")):
    for i in range({n}):
        for k in range(counts[i] % {m} + 1):
            with T.block("C"):
                vi = T.axis.spatial({n}, i)
                vk = T.axis.reduce({m}, k)
                T.reads(counts[vi], A[vi, vk])
                T.writes(C[vi])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
"""

# Blocks in blocks, views

NESTED_SUMS = """
A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
    for i, k in T.grid(2, 2):
        with T.block("outer"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi * 4 : vi * 4 + 4, vk * 4 : vk * 4 + 4])
            T.writes(C[vi * 4 : vi * 4 + 4])
            with T.init():
                for x in range(4):
                    with T.block("start"):
                        vx = T.axis.spatial(4, x)
                        T.reads()
                        T.writes(C[vi * 4 + vx])
                        C[vi * 4 + vx] = T.float32(0)
            for x, r in T.grid(4, 4):
                with T.block("inner"):
                    vx, vr = T.axis.remap("SR", [x, r])
                    T.reads(C[vi * 4 + vx], A[vi * 4 + vx, vk * 4 + vr])
                    T.writes(C[vi * 4 + vx])
                    C[vi * 4 + vx] = C[vi * 4 + vx] + A[vi * 4 + vx, vk * 4 + vr]
"""

POINT_VIEWS = """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n}, {m}), "float32")):
    B = T.alloc_buffer(({n}, {m}), "float32")
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            A0 = T.match_buffer(A[vi, vj], (1, 1), "float32", offset_factor=1)
            B[vi, vj] = A0[0, 0] + T.float32(1)
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C0 = T.match_buffer(C[vi, vj], (1, 1), "float32", offset_factor=1)
            C0[0, 0] = B[vi, vj] * T.float32(2)
"""

ROW_VIEWS = """
A: T.Buffer(({n}, 8), "float32"), C: T.Buffer(({n}, 8), "float32")):
    B = T.alloc_buffer(({n}, 8), "float32")
    for i, j in T.grid({n}, 2):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj * 4 : vj * 4 + 4])
            T.writes(B[vi, vj * 4 : vj * 4 + 4])
            X = T.match_buffer(A[vi, vj * 4 : vj * 4 + 4], (4,), "float32")
            Y = T.match_buffer(B[vi, vj * 4 : vj * 4 + 4], (4,), "float32")
            for x in range(4):
                with T.block("row"):
                    vx = T.axis.spatial(4, x)
                    T.reads(X[vx])
                    T.writes(Y[vx])
                    Y[vx] = X[vx] + T.float32(1)
    for i, j in T.grid({n}, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, 7 - vj] * T.float32(2)
"""

# Symbolic extents, int64 loops

SYMBOLIC = """
a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, {m}), "float32")
    C = T.match_buffer(c, (n, {m}), "float32")
    B = T.alloc_buffer((n, {m}), "float32")
    for i, j in T.grid(n, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(n, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
"""

SYMBOLIC_SUMS = """
a: T.handle, c: T.handle):
    n, k = T.int32(), T.int32()
    A = T.match_buffer(a, (n, k), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i, r in T.grid(n, k):
        with T.block("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vr]
"""

LONG = """
A: T.Buffer((T.int64({n}), T.int64({m})), "float32"),
         C: T.Buffer((T.int64({n}), T.int64({m})), "float32")):
    B = T.alloc_buffer((T.int64({n}), T.int64({m})), "float32")
    for i, j in T.grid(T.int64({n}), T.int64({m})):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(T.int64({n}), T.int64({m})):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] * T.float32(2)
"""

LONG_LOOPS = """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n},), "float32")):
    B = T.alloc_buffer(({n}, {m}), "float32")
    for i in T.serial(T.int64({n})):
        for j in range({m}):
            with T.block("B"):
                vi = T.axis.spatial(T.int64({n}), i)
                vj = T.axis.spatial({m}, j)
                B[vi, vj] = A[vi, vj] + T.float32(1)
    for i in range({n}):
        for k in T.serial(T.int64({m})):
            with T.block("C"):
                vi = T.axis.spatial({n}, i)
                vk = T.axis.reduce(T.int64({m}), k)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi, vk]
"""

# Odd reducers

HORNER = """
A: T.Buffer(({n}, 6), "float32"), C: T.Buffer(({n},), "float32")):
    for i, k in T.grid({n}, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] * T.float32(3) + A[vi, vk]
"""

PLACES = """
A: T.Buffer(({n}, 9), "float32"), where: T.Buffer(({n},), "int32"),
         most: T.Buffer(({n},), "float32")):
    for i, k in T.grid({n}, 9):
        with T.block("most"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                where[vi] = -1
                most[vi] = T.float32(-340282346638528859811704183484516925440.0)
            where[vi] = T.Select(most[vi] >= A[vi, vk], where[vi], vk)
            most[vi] = {value}
"""
RIGHT_VALUE = "T.Select(most[vi] >= A[vi, vk], most[vi], A[vi, vk])"
WRONG_VALUE = "T.Select(most[vi] >= A[vi, vk], most[vi], A[vi, vk] * T.float32(2))"

BIASED_SUMS = """
A: T.Buffer(({n}, {m}), "float32"), bias: T.Buffer(({n},), "float32"),
         C: T.Buffer(({n},), "float32")):
    for i, k in T.grid({n}, {m}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = bias[vi]
            C[vi] = C[vi] + A[vi, vk]
"""

LAST_ONE = """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n},), "float32")):
    for i, k in T.grid({n}, {m}):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = T.Select(A[vi, vk] > C[vi], A[vi, vk] - C[vi], C[vi])
"""

# Places that come out of memory, and what is declared but never done

GATHER = """
ids: T.Buffer(({n},), "int32"), W: T.Buffer((6, 4), "float32"),
         C: T.Buffer(({n}, 4), "float32")):
    B = T.alloc_buffer((6, 4), "float32")
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = W[vi, vj] * T.float32(2)
    for i, j in T.grid({n}, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[ids[vi] % 6, vj] + W[vi % 6, 3 - vj]
"""

CHOSEN = """
ids: T.Buffer(({n},), "int32"), A: T.Buffer(({n}, {m}), "float32"),
         C: T.Buffer(({n}, {m}), "float32")):
    for i, j in T.grid({n}, {m}):
        with T.block("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            T.where(ids[i] % 2 == 0)
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(1)
"""

DECLARED = """
A: T.Buffer(({n}, {m}), "float32"), C: T.Buffer(({n}, {m}), "float32"),
         D: T.Buffer(({n}, {m}), "float32")):
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj], D[vi, vj])
            T.writes(C[vi, vj], D[vi, vj])
            C[vi, vj] = A[vi, vj] + T.float32(1)
"""

# Loops of unknown length, with values of their own, and in the output

SEARCHED = """
A: T.Buffer(({n}, {m}), "float32"), N: T.Buffer(({n},), "int32"),
         C: T.Buffer(({n}, {m}), "float32"), D: T.Buffer(({n}, {m}), "float32")):
    B = T.alloc_buffer(({n}, {m}), "float32")
    for i, j in T.grid({n}, {m}):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid({n}, {m}):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            x: T.float32 = B[vi, vj]
            step: T.int32 = 0
            while x < T.float32(9) and step < 20:
                step += 1
                x += B[(vi + step) % {n}, vj] + T.float32(step)
                if step > N[vi]:
                    for k in range({m}):
                        x += B[vi, k]
            C[vi, vj] = x
    for i, j in T.grid({n}, {m}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj]
            while D[vi, vj] < T.float32(5):
                D[vi, vj] = D[vi, vj] + T.float32(2)
"""

TEXTS = {
    **THREADS,
    "ragged": RAGGED,
    "overcomputed": OVERCOMPUTED,
    "borders": BORDERS,
    "triangle": TRIANGLE,
    "prefix_sums": PREFIX_SUMS,
    "counted": COUNTED,
    "nested_sums": NESTED_SUMS,
    "point_views": POINT_VIEWS,
    "row_views": ROW_VIEWS,
    "symbolic": SYMBOLIC,
    "symbolic_sums": SYMBOLIC_SUMS,
    "long": LONG,
    "long_loops": LONG_LOOPS,
    "horner": HORNER,
    "places": PLACES.replace("{value}", RIGHT_VALUE),
    "wrong_places": PLACES.replace("{value}", WRONG_VALUE),
    "biased_sums": BIASED_SUMS,
    "last_one": LAST_ONE,
    "gather": GATHER,
    "chosen": CHOSEN,
    "declared": DECLARED,
    "searched": SEARCHED,
}


def text_of(name: str, choose: Choose) -> str:
    """Return the text of a program of a kind, with chosen extents."""
    n, m = choose((4, 6)), choose((3, 5, 8))
    return HEAD + TEXTS[name].replace("{n}", str(n)).replace("{m}", str(m)).lstrip("\n")
