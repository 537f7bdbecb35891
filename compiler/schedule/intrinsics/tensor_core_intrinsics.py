"""The tensor intrinsics of NVIDIA's tensor cores, under the names that TVM gives to such.

wmma_fill_16x16x16_f32                     C = 0, a tile in an accumulator
wmma_load_16x16x16_f16_a_shared            a tile of A from shared memory to a fragment
wmma_load_16x16x16_f16_b_trans_shared      a tile of B, stored as n rows of k elements
wmma_sync_16x16x16_f16f16f32[_trans]       C += A * B; with `_trans`, B has n rows
wmma_store_16x16x16_f32_global             C to global memory

`mma_*_16x8x16_*`, `mma_*_16x8x8_*` and `mma_*_16x8x32_*` are the same for one instruction each. The
description is the implementation too: the oracle, the evaluator and CPUs run it. A note on its loop
names the instruction that takes its place on a GPU:

    for i in T.serial(16, annotations={"device_instruction": "mma.m16n8k16.bf16.f32"}):

Copies to and from fragments need no note: nothing else reaches the registers of a warp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse
from compiler.target.tensor_cores import DEVICE_INSTRUCTION, MMA_INSTRUCTIONS, MmaInstruction

Pair = tuple[PrimFunc, PrimFunc]

_SHORT_NAMES = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "int8": "s8", "int32": "s32"
}  # fmt: skip
_SOURCES = {"shared": "shared", "shared_dyn": "shared.dyn"}
_DESTINATIONS = {"global": "global", **_SOURCES}


@dataclass(frozen=True, slots=True)
class _Family:
    """The intrinsics around one instruction, for tiles of one shape."""

    prefix: str
    shape: tuple[int, int, int]
    instruction: MmaInstruction

    @property
    def size(self) -> str:
        return "x".join(map(str, self.shape))

    @property
    def operand(self) -> str:
        """Return the short name of the operands' type; tf32 is not the float32 of the sums."""
        return self.instruction.ptx_types[1]

    @property
    def accumulator(self) -> str:
        return _SHORT_NAMES[self.instruction.accumulator]

    def intrinsics(self) -> Iterator[tuple[str, Callable[[], Pair]]]:
        """Yield each name with the function that makes the intrinsic."""
        m, n, k = self.shape
        dtype, sums = self.instruction.operand, self.instruction.accumulator
        operand, accumulator = self.operand, self.accumulator
        types = f"{operand}{operand}{accumulator}"
        yield f"{self.prefix}_fill_{self.size}_{accumulator}", partial(_fill, (m, n), sums)
        for suffix, is_transposed in (("", False), ("_trans", True)):
            yield (
                f"{self.prefix}_sync_{self.size}_{types}{suffix}",
                partial(_sync, self.shape, self.instruction, is_transposed),
            )
            b = (n, k) if is_transposed else (k, n)
            for name, scope in _SOURCES.items():
                yield (
                    f"{self.prefix}_load_{self.size}_{operand}_b{suffix}_{name}",
                    partial(_copy, b, dtype, scope, "wmma.matrix_b"),
                )
        for name, scope in _SOURCES.items():
            yield (
                f"{self.prefix}_load_{self.size}_{operand}_a_{name}",
                partial(_copy, (m, k), dtype, scope, "wmma.matrix_a"),
            )
        for name, scope in _DESTINATIONS.items():
            yield (
                f"{self.prefix}_store_{self.size}_{accumulator}_{name}",
                partial(_copy, (m, n), sums, "wmma.accumulator", scope),
            )


def _buffer(name: str, shape: tuple[int, int], dtype: str, scope: str) -> str:
    return f'{name}: T.Buffer({shape}, "{dtype}", scope="{scope}")'


def _sync(shape: tuple[int, int, int], instruction: MmaInstruction, is_transposed: bool) -> Pair:
    m, n, k = shape
    dtype, sums = instruction.operand, instruction.accumulator
    params = ", ".join(
        (
            _buffer("A", (m, k), dtype, "wmma.matrix_a"),
            _buffer("B", (n, k) if is_transposed else (k, n), dtype, "wmma.matrix_b"),
            _buffer("C", (m, n), sums, "wmma.accumulator"),
        )
    )
    a, b = "A[vi, vk]", "B[vj, vk]" if is_transposed else "B[vk, vj]"
    if dtype != sums:
        a, b = (f'T.Cast("{sums}", {operand})' for operand in (a, b))
    note = f'annotations={{"{DEVICE_INSTRUCTION}": "{instruction.name}"}}'
    desc, impl = (
        parse(f"""
@T.prim_func
def sync({params}):
    for i in T.serial({m}{noted}):
        for j, k in T.grid({n}, {k}):
            with T.sblock("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + {a} * {b}
""")
        for noted in ("", f", {note}")
    )
    return desc, impl


def _fill(shape: tuple[int, int], dtype: str) -> Pair:
    value = "0" if dtype.startswith("int") else f"T.{dtype}(0)"
    fill = parse(f"""
@T.prim_func
def fill({_buffer("C", shape, dtype, "wmma.accumulator")}):
    for i, j in T.grid({shape[0]}, {shape[1]}):
        with T.sblock("init"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = {value}
""")
    return fill, fill


def _copy(shape: tuple[int, int], dtype: str, source: str, destination: str) -> Pair:
    copy = parse(f"""
@T.prim_func
def copy({_buffer("S", shape, dtype, source)}, {_buffer("D", shape, dtype, destination)}):
    for i, j in T.grid({shape[0]}, {shape[1]}):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = S[vi, vj]
""")
    return copy, copy


def _families() -> Iterator[_Family]:
    for instruction in MMA_INSTRUCTIONS.values():
        yield _Family("mma", instruction.shape, instruction)
        if instruction.operand == "float16":
            yield _Family("wmma", (16, 16, 16), instruction)


TENSOR_CORE_INTRINSICS: dict[str, Callable[[], Pair]] = dict(
    pair for family in _families() for pair in family.intrinsics()
)
