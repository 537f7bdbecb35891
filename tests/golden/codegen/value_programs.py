"""Programs of values of every type: arithmetic, conversions, dot products and functions."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Call,
    For,
    IntImm,
    Load,
    LoopKind,
    Store,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.golden.codegen.scripts import script


def integers(dtype: DType, kind: str) -> PrimFunc:
    """Every operation on integers: of a divisor and a shift nothing is known, or all."""
    shape = f"12 {dtype}"
    one = f"T.{dtype}"
    return script(
        f"""
for i in {kind}(12):
    C[i] = A[i] // B[i] + A[i] % B[i]
    D[i] = (A[i] << B[i]) ^ (A[i] >> B[i])
    E[i] = T.max(A[i] // {one}(3), T.min(B[i] % {one}(3), A[i])) - (A[i] << {one}(2))
    F[i] = T.Select(not A[i] < B[i] or A[i] == B[i], A[i] & B[i], A[i] | B[i])
    G[i] = A[i] >= B[i]
""",
        **dict.fromkeys("ABCDEF", shape),
        G="12 bool",
    )


def bytes_in_vectors() -> PrimFunc:
    return integers("int8", "T.vectorized")


def bytes_in_scalars() -> PrimFunc:
    return integers("int8", "range")


def unsigned_in_vectors() -> PrimFunc:
    return integers("uint32", "T.vectorized")


def floats(dtype: DType, kind: str) -> PrimFunc:
    """Arithmetic, comparisons and conversions of floats of one type."""
    shape = f"12 {dtype}"
    one = f'T.Cast("{dtype}", T.float32({{}}))'.format
    return script(
        f"""
for i in {kind}(12):
    C[i] = A[i] * B[i] + A[0] / (B[i] - A[i] * {one(0.5)})
    D[i] = T.max(T.min(A[i], B[i]), {one(0)})
    E[i] = T.Select(A[i] < B[i] and A[i] != B[0], -A[i], B[i])
    F[i] = T.Cast("int32", A[i]) + T.Cast("int32", A[i] > B[i])
    G[i] = T.Cast("bool", A[i])
    H[i] = T.Cast("{dtype}", T.Cast("float64", A[i]) + T.Cast("float64", F[i]))
""",
        **dict.fromkeys("ABCDEH", shape),
        F="12 int32",
        G="12 bool",
    )


def float32_in_scalars() -> PrimFunc:
    return floats("float32", "range")


def float32_in_vectors() -> PrimFunc:
    return floats("float32", "T.vectorized")


def float64_in_vectors() -> PrimFunc:
    return floats("float64", "T.vectorized")


def float16_in_scalars() -> PrimFunc:
    return floats("float16", "range")


def float16_in_vectors() -> PrimFunc:
    return floats("float16", "T.vectorized")


def bfloat16_in_vectors() -> PrimFunc:
    return floats("bfloat16", "T.vectorized")


def float8_e4m3fn_in_vectors() -> PrimFunc:
    return floats("float8_e4m3fn", "T.vectorized")


def float8_e5m2_in_vectors() -> PrimFunc:
    return floats("float8_e5m2", "T.vectorized")


def reinterpreted() -> PrimFunc:
    return script(
        """
for i in range(8):
    B[i] = T.reinterpret("uint32", A[i]) ^ T.uint32(1)
    D[i] = T.reinterpret("uint16", C[i]) >> T.uint16(1)
""",
        A="8 float32",
        B="8 uint32",
        C="8 bfloat16",
        D="8 uint16",
    )


def booleans_and_narrowed_integers() -> PrimFunc:
    return script(
        """
for i in T.vectorized(8):
    B[i] = T.Select(P[i] and A[i] > 3, T.Cast("int8", A[i]), T.Cast("int8", T.abs(A[i])))
    Q[i] = True
for i in range(1):
    if i < 1:
        A[i] = T.Cast("int32", P[i])
""",
        A="8 int32",
        P="8 bool",
        B="8 int8",
        Q="8 bool",
    )


def names() -> PrimFunc:
    """Values with names, which an index and two stores use."""
    return script(
        """
for i in range(8):
    with T.sblock("B"):
        v = T.axis.spatial(8, i)
        p: T.let[T.int32] = T.max(T.min(I[v], 7), 0)
        x: T.let[T.float32] = A[p] * T.float32(2)
        B[v] = x
        C[v] = x + A[v]
""",
        A="8 float32",
        I="8 int32",
        B="8 float32",
        C="8 float32",
    )


def dot_products(a: DType, b: DType, steps: int) -> PrimFunc:
    """Return a product of narrow integers in a tile of 2 rows, the reduction unrolled."""
    A, B = te.placeholder((2, 8), a, name="A"), te.placeholder((8, 16), b, name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute(
        (2, 16),
        lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k),
        name="C",
    )
    schedule = Schedule(te.create_prim_func([A, B, C]))
    i, j, r = schedule.get_loops("C")
    r_0, r_1 = schedule.split(r, [None, steps])
    schedule.reorder(r_0, r_1, i, j)
    schedule.unroll(r_1)
    schedule.unroll(i)
    schedule.vectorize(j)
    return schedule.func


def dot_products_of_bytes() -> PrimFunc:
    return dot_products("int8", "int8", 4)


def dot_products_of_mixed_bytes() -> PrimFunc:
    return dot_products("uint8", "int8", 4)


def dot_products_of_words() -> PrimFunc:
    return dot_products("int16", "int16", 2)


def functions(names: tuple[str, ...], dtype: DType, kind: LoopKind, size: int) -> PrimFunc:
    """Return a program that calls functions, one a loop, on the elements of A (and B)."""
    arity = {"pow": 2, "atan2": 2, "fmod": 2, "copysign": 2}
    inputs = [make_buffer(letter, (size,), dtype) for letter in "AB"]
    outputs, loops = [], []
    for name in names:
        output, i = make_buffer(name, (size,), dtype), Var("i")
        args = tuple(Load(buffer, (i,)) for buffer in inputs[: arity.get(name, 1)])
        loops.append(For(i, IntImm(size), Store(output, (i,), Call(name, args, dtype)), kind))
        outputs.append(output)
    root = Block("root", (), (), (), seq(*loops))
    return PrimFunc("functions", (*inputs, *outputs), BlockRealize((), TRUE, root))


_POLYNOMIALS = ("exp", "log", "tanh", "sigmoid", "erf", "rsqrt")
_LONG_POLYNOMIALS = ("sin", "tan", "pow", "exp10", "log1p")
_OTHERS = ("sqrt", "floor", "round", "abs", "copysign", "sigmoid", "rsqrt", "acos", "atan2")


def polynomials() -> PrimFunc:
    return functions(_POLYNOMIALS, "float32", "vectorized", 8)


def polynomials_with_rare_branches() -> PrimFunc:
    return functions(_LONG_POLYNOMIALS, "float32", "vectorized", 8)


def polynomials_of_scalars() -> PrimFunc:
    return functions(("cos", "exp2", "log2", "log10"), "float32", "serial", 3)


def library_functions() -> PrimFunc:
    return functions(_OTHERS, "float32", "vectorized", 4)


def functions_of_doubles() -> PrimFunc:
    return functions((*_OTHERS, "exp", "pow"), "float64", "serial", 3)


def chains_of_polynomials() -> PrimFunc:
    """A loop of one polynomial, whose vectors are computed side by side."""
    return functions(("exp",), "float32", "vectorized", 64)
