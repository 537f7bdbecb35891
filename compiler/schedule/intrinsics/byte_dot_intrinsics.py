"""Sums of products of narrow integers, under the names that TVM gives to such intrinsics.

dot_16x4_vnni, dot_16x4_avx512                  16 sums C[i] += A[k] * B[i, k] of x86: u8 times s8
dot_4x4_i8i8s32_neon, dot_4x4_i8i8s32_sdot      4 sums of Arm: s8 times s8
dot_4x4_u8u8u32_udot, dot_4x4_u8u8i32_hdot      4 sums of Arm: u8 times u8
dot_32x4_u8u8i32_vrmpy, dot_32x4_u8i8i32_vrmpy  32 sums of Hexagon: u8 times u8 or s8
dot_product_32x2_i16i16i32_vdmpy                32 sums of two products of s16, of Hexagon
dp4a_s8s8s32, dp4a_s8u8s32, dp4a_u8s8s32,       one sum of a GPU's thread, from shared memory
dp4a_u8u8u32, sdot4

An implementation has the loops of the description, unrolled and vectorized. The code generator
chooses the instruction by the CPU (`compiler.backends.cpu.codegen.operations.dot_products`):
`vpdpbusd`, `sdot` or `udot` if there is one, and `vpmaddwd` or multiplications otherwise. So each
runs on every CPU, and no sum saturates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse

_DESCRIPTION = ("range", "range")
_IMPLEMENTATION = ("T.vectorized", "T.unroll")


@dataclass(frozen=True, slots=True)
class _Dot:
    """The types of both factors and of the sums; `rows` is None for a single sum of four terms."""

    first: DType
    second: DType
    sums: DType
    rows: int | None
    terms: int = 4

    def __call__(self) -> tuple[PrimFunc, PrimFunc]:
        return self._program(*_DESCRIPTION), self._program(*_IMPLEMENTATION)

    def _program(self, over_rows: str, over_terms: str) -> PrimFunc:
        update = f"C[vi] = C[vi] + T.Cast({self.sums!r}, A[vk]) * T.Cast({self.sums!r}, B[vi, vk])"
        if self.rows is None:
            return parse(f"""
@T.prim_func
def dot(
    A: T.Buffer((4,), {self.first!r}, scope="shared"),
    B: T.Buffer((4,), {self.second!r}, scope="shared"),
    C: T.Buffer((1,), {self.sums!r}, scope="local"),
):
    for k in {over_terms}(4):
        with T.sblock("update"):
            vk = T.axis.reduce(4, k)
            {update.replace("C[vi]", "C[0]").replace("B[vi, vk]", "B[vk]")}
""")
        return parse(f"""
@T.prim_func
def dot(
    A: T.Buffer(({self.terms},), {self.first!r}),
    B: T.Buffer(({self.rows}, {self.terms}), {self.second!r}),
    C: T.Buffer(({self.rows},), {self.sums!r}),
):
    for i in {over_rows}({self.rows}):
        for k in {over_terms}({self.terms}):
            with T.sblock("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                {update}
""")


BYTE_DOT_INTRINSICS: dict[str, Callable[[], tuple[PrimFunc, PrimFunc]]] = {
    "dot_16x4_vnni": _Dot("uint8", "int8", "int32", 16),
    "dot_16x4_avx512": _Dot("uint8", "int8", "int32", 16),
    "dot_4x4_i8i8s32_neon": _Dot("int8", "int8", "int32", 4),
    "dot_4x4_i8i8s32_sdot": _Dot("int8", "int8", "int32", 4),
    "dot_4x4_u8u8u32_udot": _Dot("uint8", "uint8", "uint32", 4),
    "dot_4x4_u8u8i32_hdot": _Dot("uint8", "uint8", "int32", 4),
    "dot_32x4_u8u8i32_vrmpy": _Dot("uint8", "uint8", "int32", 32),
    "dot_32x4_u8i8i32_vrmpy": _Dot("uint8", "int8", "int32", 32),
    "dot_product_32x2_i16i16i32_vdmpy": _Dot("int16", "int16", "int32", 32, terms=2),
    "dp4a_s8s8s32": _Dot("int8", "int8", "int32", None),
    "dp4a_s8u8s32": _Dot("int8", "uint8", "int32", None),
    "dp4a_u8s8s32": _Dot("uint8", "int8", "int32", None),
    "dp4a_u8u8u32": _Dot("uint8", "uint8", "uint32", None),
    "sdot4": _Dot("int8", "int8", "int32", None),
}
