"""The tensor intrinsics that come with the compiler.

gemm8x8                 y = w times x transposed, of 8 by 8 each
fill_zero               y = 0, of 8 by 8: the reset of gemm8x8
fuse_gemm8x8_add        y = y + w times x transposed: its update
row_update_8_f32        C[0:8] = C[0:8] + A[0] * B[0:8], one fused multiply-add with AVX2
dot_8_f32               C[0] = C[0] + the sum of A[0:8] * B[0:8]
dot_16_u8s8s32_avx2     the same of 16 bytes, unsigned times signed, by AVX2's pmaddwd
dot_16x4_vnni, ...      sums of four products of bytes, under TVM's names: see `byte_dot_intrinsics`
mma_*, wmma_*           tiles on tensor cores of GPUs: see `tensor_core_intrinsics`

They are made at first use. Tests compare each implementation with its description.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.schedule.intrinsics.byte_dot_intrinsics import BYTE_DOT_INTRINSICS
from compiler.schedule.intrinsics.describe import describe
from compiler.schedule.intrinsics.tensor_core_intrinsics import TENSOR_CORE_INTRINSICS
from compiler.script.parser import parse

Pair = tuple[PrimFunc, PrimFunc]
"""A description and an implementation."""

_DOT = """T.call_llvm_pure_intrin(
            "float32", "llvm.vector.reduce.fadd", T.float32(0), w[i, 0:8] * x[j, 0:8]
        )"""
_GEMM_PARAMS = (
    'w: T.Buffer((8, 8), "float32"), x: T.Buffer((8, 8), "float32"), y: T.Buffer((8, 8), "float32")'
)
_GEMM_IMPLS = {
    "gemm8x8": f"""
@T.prim_func
def gemm8x8({_GEMM_PARAMS}):
    for i, j in T.grid(8, 8):
        y[i, j] = {_DOT}
""",
    "fill_zero": """
@T.prim_func
def fill_zero(y: T.Buffer((8, 8), "float32")):
    for i in range(8):
        y[i, 0:8] = T.Broadcast(T.float32(0), 8)
""",
    "fuse_gemm8x8_add": f"""
@T.prim_func
def fuse_gemm8x8_add({_GEMM_PARAMS}):
    for i, j in T.grid(8, 8):
        y[i, j] = y[i, j] + {_DOT}
""",
}
_GEMM_PARTS = {"gemm8x8": "compute", "fill_zero": "reset", "fuse_gemm8x8_add": "update"}


def _gemm(name: str) -> Pair:
    """Return one of the three, described by the tensor expression that declares them."""
    w, x = te.placeholder((8, 8), name="w"), te.placeholder((8, 8), name="x")
    k = te.reduce_axis((0, 8), "k")
    y = te.compute((8, 8), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k), "y")
    return describe([w, x, y])[_GEMM_PARTS[name]], parse(_GEMM_IMPLS[name])


_SCRIPTS = {
    "row_update_8_f32": (
        """
@T.prim_func
def desc(
    A: T.Buffer((1,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")
):
    for j in range(8):
        with T.sblock("update"):
            vj = T.axis.spatial(8, j)
            C[vj] = C[vj] + A[0] * B[vj]
""",
        """
@T.prim_func
def impl(
    A: T.Buffer((1,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")
):
    C[0:8] = C[0:8] + T.Broadcast(A[0], 8) * B[0:8]
""",
    ),
    "dot_8_f32": (
        """
@T.prim_func
def desc(
    A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")
):
    for k in range(8):
        with T.sblock("update"):
            vk = T.axis.reduce(8, k)
            C[0] = C[0] + A[vk] * B[vk]
""",
        """
@T.prim_func
def impl(
    A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")
):
    C[0] = T.call_llvm_pure_intrin(
        "float32", "llvm.vector.reduce.fadd", C[0], A[0:8] * B[0:8]
    )
""",
    ),
    "dot_16_u8s8s32_avx2": (
        """
@T.prim_func
def desc(
    A: T.Buffer((16,), "uint8"), B: T.Buffer((16,), "int8"), C: T.Buffer((1,), "int32")
):
    for k in range(16):
        with T.sblock("update"):
            vk = T.axis.reduce(16, k)
            C[0] = C[0] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vk])
""",
        """
@T.prim_func
def impl(
    A: T.Buffer((16,), "uint8"), B: T.Buffer((16,), "int8"), C: T.Buffer((1,), "int32")
):
    C[0] = C[0] + T.call_llvm_pure_intrin(
        "int32",
        "llvm.vector.reduce.add",
        T.call_llvm_pure_intrin(
            "int32x8",
            "llvm.x86.avx2.pmadd.wd",
            T.Cast("int16", A[0:16]),
            T.Cast("int16", B[0:16]),
        ),
    )
""",
    ),
}


def _scripted(name: str) -> Pair:
    desc, impl = _SCRIPTS[name]
    return parse(desc), parse(impl)


def _later(make: Callable[[str], Pair], name: str) -> Callable[[], Pair]:
    return lambda: make(name)


SHIPPED: dict[str, Callable[[], Pair]] = {
    **{name: _later(_gemm, name) for name in _GEMM_IMPLS},
    **{name: _later(_scripted, name) for name in _SCRIPTS},
    **BYTE_DOT_INTRINSICS,
    **TENSOR_CORE_INTRINSICS,
}
