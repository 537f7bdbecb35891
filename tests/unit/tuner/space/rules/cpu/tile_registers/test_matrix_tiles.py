"""Products in tile registers (AMX): their code is run with a model of the registers."""

from __future__ import annotations

import re
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import ops
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import build, emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import compare, interpret
from compiler.target.cpu import CpuTarget
from tests.targets import here
from tests.unit.compiler.backends.cpu.codegen.emitters.tile_model import run_by_model
from tests.unit.tuner.space.rules.cpu.tile_registers.tile_candidates import (
    CPU,
    TARGET,
    needs_tiles,
    run,
    scheduled,
)
from tuner.space.generate import design_space
from tuner.task import Task

PRODUCTS = {
    "blocks of 2 x 2 tiles": (ops.dense(64, 64, 96, "bfloat16"), 4 * 4 * 3, 2),
    "an odd number of tiles": (ops.matmul(48, 16, 64, "bfloat16", out_dtype="float32"), 3 * 2, 2),
    "a batch": (ops.matmul(16, 32, 32, "bfloat16", batch=2), 2 * 2, 2),
    "unsigned and signed bytes": (ops.quantized_dense(32, 48, 128), 2 * 3 * 2, 2),
    "signed bytes": (ops.matmul(32, 16, 64, "int8", out_dtype="int32"), 2, 2),
    "padded rows, columns and steps": (ops.dense(21, 18, 35, "bfloat16"), 2 * 2 * 2, 1),
    "a partial tile in each row of tiles": (ops.quantized_dense(39, 50, 70), 3 * 4 * 2, 1),
    "a sum in blocks": (ops.dense(32, 32, 32 * 32, "bfloat16"), 2 * 2 * 32, 3),
    "padded rows of sums in blocks": (ops.dense(21, 18, 32 * 32, "bfloat16"), 2 * 2 * 32, 2),
}


@pytest.mark.parametrize(("func", "products", "sketches"), PRODUCTS.values(), ids=PRODUCTS)
def test_candidates_are_correct_with_a_model_of_the_registers(
    func: PrimFunc, products: int, sketches: int
) -> None:
    space = design_space(Task(func, TARGET))
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)
    for seed in range(2):
        candidates = list(scheduled(func, space, seed))
        assert len(candidates) == sketches
        for candidate in candidates:
            outputs, num_products = run_by_model(candidate, inputs, CPU, CpuTarget.of(here()))
            compare(func, outputs, expected)
            assert num_products >= products


@pytest.mark.parametrize("steps", [64, 1024])
def test_each_candidate_with_partial_rows_and_columns_has_tiles(steps: int) -> None:
    """Of 66 x 1470 sums, the last tiles of both are partial, and all rows may be one block."""
    func = ops.matmul(66, 1470, steps, "bfloat16")
    space = design_space(Task(func, TARGET))
    for seed in range(4):
        for candidate in scheduled(func, space, seed):
            assert "tdpbf16ps" in emit(candidate, TARGET).text


@pytest.mark.parametrize(
    ("dtype", "instruction"), [("bfloat16", "tdpbf16ps"), ("int8", "tdpbssd"), ("uint8", "tdpbuud")]
)
def test_a_block_of_four_tiles_is_loaded_once_for_the_whole_sum(
    dtype: DType, instruction: str
) -> None:
    total: DType = "float32" if dtype == "bfloat16" else "int32"
    func = ops.matmul(32, 32, 256, dtype, out_dtype=total)
    space = design_space(Task(func, TARGET))
    seeds = iter(range(20))
    text = ""
    while len(re.findall(rf"\b{instruction}\b", text)) < 4:
        candidate = next(scheduled(func, space, next(seeds)))
        text = disassemble(emit(candidate, TARGET).text, TARGET)
    parts = re.findall(r"\b(ldtilecfg|tilezero|tileload|tdp|tilestore|tilerelease|j[a-z]+)", text)
    inside = " ".join(parts).partition("tilezero ")[2].partition(" tilestore")[0]
    expected = ["tilezero"] * 3 + ["tileload"] * 4 + ["tdp"] * 4 + ["jb"]
    assert inside == " ".join(expected)
    assert [parts.count(name) for name in ("ldtilecfg", "tilestore", "tilerelease")] == [1, 4, 1]


@pytest.mark.parametrize(
    ("func", "cpu"),
    [
        (ops.dense(64, 64, 64, "bfloat16"), "znver5"),
        (ops.dense(4, 64, 64, "bfloat16"), CPU),
        (ops.dense(64, 64, 64, "float32"), CPU),
    ],
)
def test_other_products_have_no_such_sketch(func: PrimFunc, cpu: str) -> None:
    space = design_space(Task(func, CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")))
    assert not any("matrix_tiles" in sketch.tags for sketch in space.sketches)


OPERATORS: dict[str, Callable[[int, int, int], PrimFunc]] = {
    "dense": lambda m, n, k: ops.dense(m, n, k, "bfloat16", bias=True),
    "matmul": lambda m, n, k: ops.matmul(m, n, k, "bfloat16", out_dtype="float32"),
    "quantized_dense": lambda m, n, k: ops.quantized_dense(m, n, k, bias=True),
    "int8": lambda m, n, k: ops.matmul(m, n, k, "int8", out_dtype="int32"),
    "uint8": lambda m, n, k: ops.matmul(m, n, k, "uint8", out_dtype="int32"),
}


@needs_tiles
@settings(max_examples=25)
@given(
    st.sampled_from(sorted(OPERATORS)),
    st.tuples(
        st.integers(8, 100),
        st.integers(2, 100),
        st.integers(8, 300) | st.sampled_from([640, 1024, 1100, 1536]),
    ),
    st.sampled_from([1, 2]),
    st.integers(0, 1 << 16),
)
def test_candidates_are_correct_on_this_cpu(
    name: str, sizes: tuple[int, int, int], cores: int, seed: int
) -> None:
    func = OPERATORS[name](*sizes)
    target = here(cores)
    space = design_space(Task(func, target))
    inputs = random_inputs(func, seed)
    expected = interpret(func, inputs)
    candidates = list(scheduled(func, space, seed))
    assert candidates
    for candidate in candidates:
        assert "llvm.x86.tdp" in emit(candidate, target).text
        compare(func, run(build(candidate, target), func, inputs), expected)


@needs_tiles
def test_sums_of_bfloat16_flush_subnormal_numbers() -> None:
    func = ops.matmul(16, 16, 32, "bfloat16", out_dtype="float32")
    a, b = (np.zeros(shape, ml_dtypes.bfloat16) for shape in ((16, 32), (32, 16)))
    a[0, 0], b[0] = 1e-39, 1e30  # a subnormal operand, whose product would be 1e-9
    a[1, 0], b[0, 1] = 1e-30, 1e-10  # a product below the least normal number
    a[2, 0], b[0, 2] = 1e-30, 1.0
    (buffer_a, buffer_b, _) = func.buffers
    inputs = {buffer_a.name: a, buffer_b.name: b}
    for candidate in scheduled(func, design_space(Task(func, here()))):
        (result,) = run(build(candidate, here()), func, inputs).values()
        assert result[0, 0] == 0
        assert result[1, 1] == 0
        assert result[2, 2] == np.float32(a[2, 0])
