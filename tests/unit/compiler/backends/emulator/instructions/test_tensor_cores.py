"""Products of tensor cores, against the fragment maps that the compiler uses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.types import Array
from compiler.target.tensor_cores import MMA_INSTRUCTIONS, FragmentMap, MmaInstruction

INT8 = MMA_INSTRUCTIONS["mma.m16n8k32.s8.s32"]
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "s8": np.int8,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "f32": np.float32,
    "s32": np.int32,
}


def source(name: str, num_a: int, num_b: int, num_c: int) -> str:
    """Return a kernel in which each lane loads its registers from arrays."""

    def operands(letter: str, count: int) -> str:
        return ", ".join(f'"r"({letter}[{count} * t + {i}])' for i in range(count))

    def braces(first: int, count: int) -> str:
        return "{" + ", ".join(f"%{first + i}" for i in range(count)) + "}"

    groups = [(0, num_c), (num_c, num_a), (num_c + num_a, num_b), (num_c + num_a + num_b, num_c)]
    results = ", ".join(f'"=r"(d[{num_c} * t + {i}])' for i in range(num_c))
    return f"""
extern "C" __global__ void product(const unsigned* a, const unsigned* b, const unsigned* c,
                                   unsigned* d) {{
  int t = threadIdx.x;
  asm volatile("{name} {", ".join(braces(*group) for group in groups)};"
               : {results}
               : {operands("a", num_a)}, {operands("b", num_b)}, {operands("c", num_c)});
}}
"""


def pack(matrix: Array, fragments: FragmentMap) -> Array:
    """Return the elements of each lane, in the order of its registers."""
    rows = [
        [matrix[fragments.position(lane, element)] for element in range(fragments.num_elements)]
        for lane in range(32)
    ]
    return np.array(rows, matrix.dtype).view(np.uint32).reshape(32, -1)


def check(instruction: MmaInstruction, name: str, types: tuple[str, str], scale: float) -> None:
    m, n, k = instruction.shape
    result, operand = (DTYPES[each] for each in types)
    rng = np.random.default_rng(0)
    a, b = ((scale * rng.standard_normal(shape)).astype(operand) for shape in ((m, k), (k, n)))
    c = (scale * rng.standard_normal((m, n))).astype(result)
    registers = [pack(a, instruction.a), pack(b, instruction.b), pack(c, instruction.c)]
    d = np.zeros_like(registers[2])
    text = source(name, *(array.shape[1] for array in registers))
    ptx = compile_cuda(text, "sm_90a").ptx
    report = emulate(ptx, None, (1, 1, 1), (32, 1, 1), [*registers, d])
    assert not report.faults, report
    expected = a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)
    values = d.view(result).reshape(32, -1)
    tolerance = 2e-3 if types[0] == "f16" else 1e-6
    for lane in range(32):
        places = [instruction.c.position(lane, i) for i in range(instruction.c.num_elements)]
        wanted = np.array([expected[place] for place in places])
        np.testing.assert_allclose(
            values[lane].astype(np.float64),
            wanted,
            rtol=tolerance,
            atol=tolerance * abs(wanted).max(),
        )


@pytest.mark.parametrize("name", MMA_INSTRUCTIONS)
def test_products_agree_with_the_fragment_maps_of_the_compiler(name: str) -> None:
    instruction = MMA_INSTRUCTIONS[name]
    m, n, k = instruction.shape
    result, operand = instruction.ptx_types
    ptx_name = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{result}.{operand}.{operand}.{result}"
    check(instruction, ptx_name, (result, operand), 20 if operand == "s8" else 1)


@pytest.mark.parametrize("operand", ["e4m3", "e5m2"])
def test_products_of_8_bit_floats(operand: str) -> None:
    name = f"mma.sync.aligned.m16n8k32.row.col.f32.{operand}.{operand}.f32"
    check(INT8, name, ("f32", operand), 1)


MATRICES = r"""
extern "C" __global__ void matrices(const unsigned short* a, unsigned* b, unsigned short* c) {
  __shared__ __align__(16) unsigned short tile[512], back[512];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) tile[i] = a[i];
  __syncthreads();
  unsigned address = (unsigned)__cvta_generic_to_shared(tile + 8 * t), r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
  for (int i = 0; i < 4; i++) b[4 * t + i] = r[i];
  address = (unsigned)__cvta_generic_to_shared(back + 8 * t);
  asm volatile("stmatrix.sync.aligned.m8n8.x4TRANS.shared.b16 [%4], {%0, %1, %2, %3};"
               :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(address) : "memory");
  __syncthreads();
  for (int i = t; i < 256; i += 32) c[i] = back[i];
}
"""


@pytest.mark.parametrize("is_transposed", [False, True])
def test_matrices_move_between_shared_memory_and_registers(is_transposed: bool) -> None:
    text = MATRICES.replace("TRANS", ".trans" if is_transposed else "")
    ptx = compile_cuda(text, "sm_90a").ptx
    a = np.random.default_rng(0).integers(0, 1 << 16, (4, 8, 8)).astype(np.uint16)
    b, c = np.zeros((32, 4), np.uint32), np.zeros_like(a)
    report = emulate(ptx, None, (1, 1, 1), (32, 1, 1), [a, b, c])
    assert not report.faults, report
    for lane in range(32):
        for number in range(4):
            matrix = a[number].T if is_transposed else a[number]
            pair = matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
            assert b[lane, number] == int(pair[0]) | int(pair[1]) << 16
    assert (c == a).all()
