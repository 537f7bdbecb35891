"""One emitter for every CPU: the instructions that its machine code must have, and must not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import te
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.backends.error import BuildError
from compiler.driver import emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from compiler.target.cpu import CpuTarget
from tests.unit.compiler.backends.cpu.codegen.programs import elementwise, mark


def assembly(func: PrimFunc, cpu: str) -> str:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    text = disassemble(emit(func, target).text, target)
    return text[text.index("body:") :].replace("\t", " ")


def product(dtype: DType, total: DType, lanes: int, rows: int = 4) -> PrimFunc:
    """Return a product in register tiles of `rows` times `lanes`."""
    A, B = (te.placeholder((64, 64), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute(
        (64, 64),
        lambda i, j: te.sum(A[i, k].astype(total) * B[k, j].astype(total), axis=k),
        name="C",
    )
    schedule = Schedule(te.create_prim_func([A, B, C]))
    i, j, r = schedule.get_loops("C")
    i0, i1 = schedule.split(i, [None, rows])
    j0, j1 = schedule.split(j, [None, lanes])
    schedule.reorder(i0, j0, r, i1, j1)
    schedule.unroll(i1)
    schedule.vectorize(j1)
    return schedule.func


def innermost(text: str) -> str:
    """Return the innermost loop: the shortest stretch from a label to a branch back to it."""
    loops = [
        text[label.end() : text.index(branch)]
        for label in re.finditer(r"^(\.L\w+):", text, re.MULTILINE)
        for branch in re.findall(rf"^ (?:jb|jne|b\.lo|b\.ne) {label[1]}\n", text, re.MULTILINE)
    ]
    return min(loops, key=len)


@pytest.mark.parametrize(
    ("cpu", "lanes", "instructions"),
    [
        ("x86-64-v3", 16, {r"vfmadd\d+ps .*%ymm": 8, r"vbroadcastss .*, %ymm": 4}),
        ("x86-64-v4", 32, {r"vfmadd\d+ps .*%zmm": 8}),
        ("neoverse-n1", 16, {r"fmla v\d+\.4s": 16, r"ldp q\d+, q\d+": 2}),
    ],
)
def test_a_register_tile_is_fused_multiply_adds_on_whole_vectors(
    cpu: str, lanes: int, instructions: dict[str, int]
) -> None:
    loop = innermost(assembly(product("float32", "float32", lanes), cpu))
    for pattern, count in instructions.items():
        assert len(re.findall(pattern, loop)) == count, loop
    # The accumulators stay in registers.
    assert not re.search(r"vmov[au]ps %[yz]mm\d+, |st[pr] q", loop), loop


@pytest.mark.parametrize(
    ("cpu", "load"),
    [
        ("x86-64-v3", r"vcvtph2ps .*\(.*%ymm"),
        ("x86-64-v4", r"vcvtph2ps .*\(.*%zmm"),
        ("cortex-a72", r"fcvtl2? v\d+\.4s"),
    ],
)
def test_halves_are_converted_a_vector_at_a_time_and_added_up_in_floats(
    cpu: str, load: str
) -> None:
    loop = innermost(assembly(product("float16", "float16", 32, rows=2), cpu))
    assert re.search(load, loop), loop
    assert re.search(r"vfmadd\d+ps .*%[yz]mm|fmla v\d+\.4s", loop), loop
    assert not re.search(r"vcvtps2ph|fcvtn", loop), loop


def test_brain_floats_are_shifted_into_place() -> None:
    loop = innermost(assembly(product("bfloat16", "float32", 16), "x86-64-v3"))
    assert len(re.findall(r"vpmovzxwd .*%ymm", loop)) == 2
    assert len(re.findall(r"vpbroadcastw .*\(.*%ymm", loop)) == 4
    assert len(re.findall(r"vpslld \$16, %ymm", loop)) == 2 + 4


def test_bytes_are_widened_a_vector_at_a_time() -> None:
    loop = innermost(assembly(product("int8", "int32", 16), "x86-64-v3"))
    assert len(re.findall(r"vpmovsxbd .*\(.*%ymm", loop)) == 2, loop
    assert re.search(r"vpmulld .*%ymm|vpmaddwd .*%ymm", loop), loop


@pytest.mark.parametrize(
    ("cpu", "copies"),
    [("x86-64-v3", r"vmovups .*%ymm"), ("x86-64-v4", r"vmovups .*%zmm"), ("cortex-a72", r"ldp q")],
)
def test_elements_are_loaded_whole_vectors_at_a_time(cpu: str, copies: str) -> None:
    func = mark(elementwise(4096, lambda A, i: A[i] * A[i] + 1.0), i="vectorized")
    assert re.search(copies, assembly(func, cpu))


BYTES: dict[str, tuple[str, str, str, str]] = {
    "llvm.x86.avx512.vpdpbusd.512": ("int32x16", "int32x16", "sapphirerapids", r"vpdpbusd .*%zmm"),
    "llvm.x86.avx512.vpdpbusd.256": ("int32x8", "int32x8", "alderlake", r"vpdpbusd .*%ymm"),
    "llvm.aarch64.neon.sdot.v4i32.v16i8": ("int32x4", "int8x16", "neoverse-n1", r"sdot v\d+\.4s"),
    "llvm.aarch64.neon.udot.v4i32.v16i8": ("int32x4", "uint8x16", "apple-m1", r"udot v\d+\.4s"),
}


def dot_of_bytes(function: str) -> PrimFunc:
    total, taken, _, _ = BYTES[function]
    lanes = int(total.split("x")[1])
    return parse(f"""
@T.prim_func
def main(A: T.Buffer(({4 * lanes},), "uint8"), B: T.Buffer(({4 * lanes},), "int8"),
         C: T.Buffer(({lanes},), "int32")):
    C[0:{lanes}] = T.call_llvm_pure_intrin("{total}", "{function}", C[T.Ramp(0, 1, {lanes})],
        T.reinterpret("{taken}", A[T.Ramp(0, 1, {4 * lanes})]),
        T.reinterpret("{taken}", B[T.Ramp(0, 1, {4 * lanes})]))
""")


@pytest.mark.parametrize("function", BYTES)
def test_dot_products_of_bytes_are_one_instruction(function: str) -> None:
    _, _, cpu, expected = BYTES[function]
    func = dot_of_bytes(function)
    assert len(re.findall(expected, assembly(func, cpu))) == 1
    with pytest.raises(BuildError, match="which cortex-a72 lacks"):
        assembly(func, "cortex-a72")


@pytest.mark.parametrize("name", ["sdot", "udot"])
def test_dot_products_of_arm_are_evaluated(name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, 16).astype("uint8"), rng.integers(-128, 128, 16).astype("int8")
    c = rng.integers(-9, 9, 4).astype("int32")
    func = dot_of_bytes(f"llvm.aarch64.neon.{name}.v4i32.v16i8")
    dtype = "int8" if name == "sdot" else "uint8"
    products = a.view(dtype).astype(int) * b.view(dtype).astype(int)
    got = evaluate(func, {"A": a, "B": b, "C": c})["C"]
    np.testing.assert_array_equal(got, c + products.reshape(4, 4).sum(1))
