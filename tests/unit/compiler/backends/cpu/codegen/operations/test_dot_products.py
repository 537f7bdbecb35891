"""Products of narrow integers: the instructions that add them up, and that they add up right."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops, te
from compiler.backends.cpu.codegen.machine_code import compile_object, disassemble
from compiler.backends.module import Module
from compiler.driver import compile_kernel, emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.target.cpu import CpuTarget
from tests.targets import here
from tests.unit.compiler.backends.cpu.codegen.programs import run


def tiled(schedule: Schedule, steps: int, lanes: int) -> PrimFunc:
    """Cut `C` into register tiles of 3 rows, the reduction unrolled by `steps`."""
    i, j, r = schedule.get_loops("C")
    i0, i1 = schedule.split(i, [None, 3])
    j0, j1 = schedule.split(j, [None, lanes])
    r0, r1 = schedule.split(r, [None, steps])
    schedule.reorder(i0, j0, r0, r1, i1, j1)
    schedule.unroll(r1)
    schedule.unroll(i1)
    schedule.vectorize(j1)
    return schedule.func


def product(  # noqa: PLR0917
    a: DType,
    b: DType,
    shape: tuple[int, int, int],
    steps: int,
    lanes: int = 16,
    largest: int | None = None,
) -> PrimFunc:
    """Return `C = A B` in register tiles of 3 rows, the reduction unrolled by `steps`.

    Elements of `A` above `largest`, if it is given, count as that.
    """
    m, n, depth = shape
    A, B = te.placeholder((m, depth), a, name="A"), te.placeholder((depth, n), b, name="B")
    k = te.reduce_axis((0, depth), name="k")
    left = A
    if largest is not None:
        limit = te.const(largest, a)
        left = te.compute((m, depth), lambda i, k: te.min(A[i, k], limit), name="limited")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(left[i, k].astype("int32") * B[k, j].astype("int32"), axis=k),
        name="C",
    )
    schedule = Schedule(te.create_prim_func([A, B, C]))
    return tiled(schedule, steps, lanes)


def operands(a: DType, b: DType, shape: tuple[int, int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return matrices that hold the ends of their types more often than not."""
    rng = np.random.default_rng(0)
    found = []
    for dtype, size in ((a, (shape[0], shape[2])), (b, (shape[2], shape[1]))):
        limits = np.iinfo(dtype)
        some = rng.integers(limits.min, limits.max, size, endpoint=True)
        ends = rng.choice([limits.min, limits.max], size)
        found.append(np.where(rng.random(size) < 0.6, ends, some).astype(dtype))
    return found[0], found[1]


def expected(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)


@pytest.mark.parametrize("cpu", ["native", "x86-64-v2"])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 6])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("int8", "int8"),
        ("uint8", "int8"),
        ("int8", "uint8"),
        ("uint8", "uint8"),
        ("int16", "int16"),
        ("int16", "uint8"),
        ("uint16", "uint16"),
        ("int32", "int8"),
    ],
)
def test_sums_of_products_are_exact_and_wrap(a: DType, b: DType, steps: int, cpu: str) -> None:
    shape = (6, 48, 12 * steps)
    x, y = operands(a, b, shape)
    got = run(product(a, b, shape, steps), x, y, target=f"cpu -mcpu={cpu} -num-cores=1")
    np.testing.assert_array_equal(got, expected(x, y))


@pytest.mark.parametrize("shape", [(7, 33, 30), (1, 5, 8), (3, 16, 7)])
def test_odd_shapes_are_correct(shape: tuple[int, int, int]) -> None:
    x, y = operands("int8", "int8", shape)
    np.testing.assert_array_equal(run(product("int8", "int8", shape, 4), x, y), expected(x, y))


@pytest.mark.parametrize("cpu", ["native", "x86-64-v2"])
@pytest.mark.parametrize("largest", [127, 128, 255])
def test_sums_of_pairs_do_not_saturate(largest: int, cpu: str) -> None:
    """All pairs are the largest, of either sign, that 8-bit operands can have."""
    shape = (6, 48, 16)
    x = np.full((6, 16), 255, np.uint8)
    y = np.where(np.arange(48) % 2, -128, 127).astype(np.int8) * np.ones((16, 1), np.int8)
    func = product("uint8", "int8", shape, 4, largest=largest)
    got = run(func, x, y, target=f"cpu -mcpu={cpu} -num-cores=1")
    np.testing.assert_array_equal(got, expected(np.minimum(x, largest), y))


NARROW_PAIRS = "pmaddubsw"


@pytest.mark.parametrize(
    ("cpu", "a", "b", "largest", "instruction"),
    [
        ("x86-64-v2", "uint8", "int8", 127, rf"{NARROW_PAIRS} .*%xmm"),
        ("znver3", "uint8", "int8", 127, rf"v{NARROW_PAIRS} .*%ymm"),
        ("skylake-avx512", "uint8", "int8", 127, rf"v{NARROW_PAIRS} .*%zmm"),
        ("znver3", "uint8", "int8", 128, r"vpmaddwd .*%ymm"),  # a pair may be 32768
        ("znver3", "int8", "int8", 127, r"vpmaddwd .*%ymm"),  # no operand is unsigned
        ("znver3", "uint8", "uint8", 127, r"vpmaddwd .*%ymm"),
        ("alderlake", "uint8", "int8", 127, r"vpdpbusd .*%ymm"),
        ("znver5", "uint8", "int8", 127, r"vpdpbusd .*%zmm"),
    ],
)
def test_pairs_are_added_in_16_bits_if_they_can_not_saturate(
    cpu: str, a: DType, b: DType, largest: int, instruction: str
) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    func = product(a, b, (6, 64, 64), 4, 2 * target.vector_bits // 32, largest)
    text = disassemble(emit(func, target).text, target).replace("\t", " ")
    groups = 2 if "wd" in instruction else 1
    assert len(re.findall(instruction, text)) == 3 * 2 * groups, text
    assert (NARROW_PAIRS in text) == (NARROW_PAIRS in instruction), text


def test_sums_that_are_used_on_the_way_are_kept() -> None:
    """A running dot product: every step is stored, so every step has to be right."""
    A, B = te.placeholder((16, 4), "int8", name="A"), te.placeholder((16, 4), "int8", name="B")

    def partial(i: te.Value, terms: int) -> te.Value:
        total = A[i, 0].astype("int32") * B[i, 0].astype("int32")
        for k in range(1, terms):
            total = total + A[i, k].astype("int32") * B[i, k].astype("int32")
        return total

    C = te.compute((16,), lambda i: partial(i, 4) + partial(i, 3) * partial(i, 2), name="C")
    schedule = Schedule(te.create_prim_func([A, B, C]))
    schedule.vectorize(schedule.get_loops("C")[0])
    x, y = operands("int8", "int8", (16, 4, 4))[0], operands("int8", "int8", (16, 16, 4))[0]
    sums = np.cumsum(x.astype(np.int64) * y.astype(np.int64), axis=1)
    wrapped = (sums[:, 3] + sums[:, 2] * sums[:, 1]).astype(np.int32)
    np.testing.assert_array_equal(run(schedule.func, x, y), wrapped)


CPUS: list[tuple[str, DType, DType, int, str]] = [
    ("x86-64-v3", "int8", "int8", 2, r"vpmaddwd .*%ymm"),
    ("x86-64-v3", "uint8", "int8", 4, r"vpmaddwd .*%ymm"),
    ("x86-64-v3", "int16", "int16", 2, r"vpmaddwd .*%ymm"),
    ("x86-64-v4", "int8", "int8", 2, r"vpmaddwd .*%zmm"),
    ("cascadelake", "int8", "int8", 2, r"vpdpwssd .*%zmm"),
    ("znver4", "uint8", "int8", 4, r"vpdpbusd .*%zmm"),
    ("znver5", "int8", "uint8", 4, r"vpdpbusd .*%zmm"),
    ("sapphirerapids", "uint8", "int8", 4, r"vpdpbusd .*%zmm"),
    ("alderlake", "int8", "uint8", 4, r"vpdpbusd .*%ymm"),
    ("sierraforest", "int8", "int8", 4, r"vpdpbssd .*%ymm"),
    ("arrowlake", "uint8", "uint8", 4, r"vpdpbuud .*%ymm"),
    ("arrowlake", "int8", "uint8", 4, r"vpdpbusd .*%ymm"),
    ("neoverse-n1", "int8", "int8", 4, r"sdot v\d+\.4s"),
    ("neoverse-v1", "uint8", "int8", 4, r"usdot v\d+\.4s"),
    ("apple-m1", "uint8", "uint8", 4, r"udot v\d+\.4s"),
    ("neoverse-v2", "uint8", "int8", 4, r"usdot v\d+\.4s"),
]


@pytest.mark.parametrize(("cpu", "a", "b", "steps", "instruction"), CPUS)
def test_a_tile_of_products_is_the_dot_products_that_the_cpu_has(
    cpu: str, a: DType, b: DType, steps: int, instruction: str
) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    lanes = 2 * target.vector_bits // 32
    func = product(a, b, (6, 64, 64), steps, lanes)
    text = disassemble(emit(func, target).text, target).replace("\t", " ")
    groups = steps // (4 if "dpb" in instruction or "dot" in instruction else 2)
    assert len(re.findall(instruction, text)) == 3 * 2 * groups, text
    # What was written for the sums in between is gone.
    assert not re.search(r"\b(vpmulld|mla|mul v)", text)


OFFSETS: list[tuple[str, DType, DType, str]] = [
    ("znver5", "int8", "int8", r"vpdpbusd .*%zmm"),
    ("alderlake", "int8", "int8", r"vpdpbusd .*%ymm"),
    ("alderlake", "uint8", "uint8", r"vpdpbusd .*%ymm"),
    ("neoverse-n1", "uint8", "int8", r"sdot v\d+\.4s"),
]


@pytest.mark.parametrize(("cpu", "a", "b", "instruction"), OFFSETS)
def test_bytes_of_other_types_cost_one_dot_product_for_all_rows_of_a_tile(
    cpu: str, a: DType, b: DType, instruction: str
) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    func = product(a, b, (6, 64, 64), 8, 2 * target.vector_bits // 32)
    text = disassemble(emit(func, target).text, target).replace("\t", " ")
    # Two groups, each of three rows of two vectors, and two vectors of what all rows share.
    assert len(re.findall(instruction, text)) == 2 * (3 * 2 + 2), text
    # The excess is subtracted once for both groups.
    assert len(re.findall(r"\b(?:vpsubd .*%[yz]mm|sub v)", text)) == 3 * 2, text


def plain(name: str, lanes: int) -> str:
    """Return a definition of a dot product of four bytes in plain LLVM IR."""
    whole, data = f"<{lanes} x i32>", f"<{4 * lanes} x i8>"
    given = data if "neon" in name else whole
    first = "zext" if any(u in name for u in ("bu", "udot", "usdot")) else "sext"
    second = "zext" if any(u in name for u in ("buud", "udot")) else "sext"
    wide = f"<{4 * lanes} x i32>"
    lines = [
        f"define internal {whole} @plain({whole} %c, {given} %a, {given} %b) {{",
        f"  %x = bitcast {given} %a to {data}",
        f"  %y = bitcast {given} %b to {data}",
        f"  %wx = {first} {data} %x to {wide}",
        f"  %wy = {second} {data} %y to {wide}",
        f"  %p = mul {wide} %wx, %wy",
    ]
    total = "%c"
    for part in range(4):
        order = ", ".join(f"i32 {4 * lane + part}" for lane in range(lanes))
        lines += [
            f"  %s{part} = shufflevector {wide} %p, {wide} poison, {whole} <{order}>",
            f"  %t{part} = add {whole} {total}, %s{part}",
        ]
        total = f"%t{part}"
    return "\n".join([*lines, f"  ret {whole} {total}", "}"])


@pytest.mark.parametrize(
    ("cpu", "a", "b", "name"),
    [
        ("alderlake", "uint8", "int8", "llvm.x86.avx512.vpdpbusd.256"),
        ("alderlake", "int8", "uint8", "llvm.x86.avx512.vpdpbusd.256"),
        ("arrowlake", "int8", "int8", "llvm.x86.avx2.vpdpbssd.256"),
        ("arrowlake", "uint8", "uint8", "llvm.x86.avx2.vpdpbuud.256"),
        ("neoverse-n1", "int8", "int8", "llvm.aarch64.neon.sdot.v4i32.v16i8"),
        ("neoverse-n1", "uint8", "uint8", "llvm.aarch64.neon.udot.v4i32.v16i8"),
        ("neoverse-v2", "int8", "uint8", "llvm.aarch64.neon.usdot.v4i32.v16i8"),
        ("alderlake", "int8", "int8", "llvm.x86.avx512.vpdpbusd.256"),
        ("alderlake", "uint8", "uint8", "llvm.x86.avx512.vpdpbusd.256"),
        ("neoverse-n1", "uint8", "int8", "llvm.aarch64.neon.sdot.v4i32.v16i8"),
    ],
)
def test_dot_products_of_other_cpus_are_given_the_right_bytes(
    cpu: str, a: DType, b: DType, name: str
) -> None:
    shape = (6, 32, 24)
    x, y = operands(a, b, shape)
    got = np.empty((6, 32), np.int32)
    func = product(a, b, shape, 8)
    run_with_definition(func, cpu, name, plain(name, 4 if "neon" in name else 8), (x, y, got))
    np.testing.assert_array_equal(got, expected(x, y))


def run_with_definition(
    func: PrimFunc, cpu: str, name: str, definition: str, arrays: tuple[NDArray[Any], ...]
) -> None:
    """Run the kernel for another CPU here, with one of its instructions written out."""
    host = here()
    text = emit(func, CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")).text
    assert f"@{name}(" in text
    lines = [s for s in text.splitlines() if not (s.startswith("declare") and name in s)]
    text = "\n".join(lines).replace(f"@{name}(", "@plain(")
    text = re.sub(r'target triple = ".*"', f'target triple = "{host.triple}"', text)
    text = text.replace(f'"tune-cpu"="{cpu}"', "")
    text += f"\n{definition}\n"
    module = Module(replace(compile_kernel(func, host), code=compile_object(text, host)))
    module(*arrays)
    module.close()


def paired_product(shape: tuple[int, int, int], steps: int, lanes: int) -> PrimFunc:
    """Return a product of bfloat16 with float32 sums, whose right operand lies in pairs."""
    m, n, depth = shape
    A = te.placeholder((m, depth), "bfloat16", name="A")
    B = te.placeholder((depth, n), "bfloat16", name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k),
        name="C",
    )
    schedule = Schedule(te.create_prim_func([A, B, C]))
    panel = schedule.cache_read("C", 1, "global")
    schedule.annotate(panel, "buffer_tile", [0, 1, lanes, 0, 2])
    return tiled(schedule, steps, lanes)


def plain_of_bfloats(lanes: int) -> str:
    """Return a definition of the dot product of two bfloat16 in plain LLVM IR."""
    whole, data, wide = f"<{lanes} x float>", f"<{2 * lanes} x bfloat>", f"<{2 * lanes} x float>"
    evens, odds = (", ".join(f"i32 {2 * n + part}" for n in range(lanes)) for part in (0, 1))
    mask = f"<{lanes} x i32>"
    return f"""define internal {whole} @plain({whole} %c, {data} %a, {data} %b) {{
  %x = fpext {data} %a to {wide}
  %y = fpext {data} %b to {wide}
  %p = fmul {wide} %x, %y
  %even = shufflevector {wide} %p, {wide} poison, {mask} <{evens}>
  %odd = shufflevector {wide} %p, {wide} poison, {mask} <{odds}>
  %s = fadd {whole} %c, %odd
  %t = fadd {whole} %s, %even
  ret {whole} %t
}}"""


@pytest.mark.parametrize(
    ("cpu", "lanes", "name"),
    [
        ("znver4", 16, "llvm.x86.avx512bf16.dpbf16ps.512"),
        ("sapphirerapids", 8, "llvm.x86.avx512bf16.dpbf16ps.256"),
        ("neoverse-v2", 4, "llvm.aarch64.neon.bfdot.v4f32.v8bf16"),
    ],
)
@pytest.mark.parametrize("steps", [2, 4, 6])
def test_dot_products_of_bfloats_are_given_the_right_pairs(
    cpu: str, lanes: int, name: str, steps: int
) -> None:
    shape = (6, 32, 24)
    rng = np.random.default_rng(0)
    # Small integers: all sums are exact, in any order.
    x, y = (rng.integers(-16, 17, size).astype("bfloat16") for size in ((6, 24), (24, 32)))
    got = np.empty((6, 32), np.float32)
    func = paired_product(shape, steps, lanes)
    run_with_definition(func, cpu, name, plain_of_bfloats(lanes), (x, y, got))
    np.testing.assert_array_equal(got, x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.parametrize(
    ("cpu", "instruction"),
    [
        ("cooperlake", r"vdpbf16ps .*%zmm"),
        ("znver5", r"vdpbf16ps .*%zmm"),
        ("neoverse-n2", "bfdot"),
    ],
)
def test_pairs_of_bfloats_are_multiplied_without_conversions(cpu: str, instruction: str) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    lanes = 2 * target.vector_bits // 32
    func = paired_product((6, 64, 64), 4, lanes)
    text = disassemble(emit(func, target).text, target).replace("\t", " ")
    assert len(re.findall(instruction, text)) == 3 * 2 * 2, text
    assert not re.search(r"\b(?:vfmadd|fmla|vpslld|shll|vpmovzx)", text), text


def test_bfloats_that_do_not_lie_in_pairs_are_added_as_floats() -> None:
    target = CpuTarget("cpu -mcpu=znver5 -num-cores=1")
    func = ops.matmul(6, 64, 64, "bfloat16", out_dtype="float32")
    schedule = Schedule(func)
    *_, j, k = schedule.get_loops("C")
    schedule.reorder(k, j)
    schedule.unroll(k)
    schedule.vectorize(j)
    assert "dpbf16ps" not in emit(schedule.func, target).text
