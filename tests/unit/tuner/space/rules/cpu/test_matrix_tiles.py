"""Products in tile registers (AMX): their code is run with a model of the registers."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import compare, interpret
from compiler.target.cpu import CpuTarget
from tests.targets import here
from tests.unit.compiler.backends.cpu.codegen.emitters.tile_model import run_by_model
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task

CPU = "sapphirerapids"
TARGET = CpuTarget(f"cpu -mcpu={CPU} -num-cores=1")


def scheduled(func: PrimFunc, space: SketchSpace, seed: int = 0) -> PrimFunc:
    """Return a candidate of the sketch with tile registers."""
    (index,) = (i for i, sketch in enumerate(space.sketches) if "matrix_tiles" in sketch.tags)
    (choices,) = space.draw(index, 1, np.random.default_rng(seed))
    return space.sketches[index].candidate(choices).trace.apply_to(func).func


PRODUCTS = {
    "blocks of 2 x 2 tiles": (ops.dense(64, 64, 96, "bfloat16"), 2 * 2 * 3 * 4),
    "an odd number of tiles": (ops.matmul(48, 16, 64, "bfloat16", out_dtype="float32"), 3 * 2),
    "a batch": (ops.matmul(16, 32, 32, "bfloat16", batch=2), 2 * 2),
    "unsigned and signed bytes": (ops.quantized_dense(32, 48, 128), 2 * 3 * 2),
    "signed bytes": (ops.matmul(32, 16, 64, "int8", out_dtype="int32"), 2),
}


@pytest.mark.parametrize(("func", "products"), PRODUCTS.values(), ids=PRODUCTS)
def test_candidates_are_correct_with_a_model_of_the_registers(
    func: PrimFunc, products: int
) -> None:
    space = design_space(Task(func, TARGET))
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)
    for seed in range(2):
        candidate = scheduled(func, space, seed)
        outputs, num_products = run_by_model(candidate, inputs, CPU, CpuTarget.of(here()))
        compare(func, outputs, expected)
        assert num_products == products


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
        text = disassemble(emit(scheduled(func, space, next(seeds)), TARGET).text, TARGET)
    parts = re.findall(r"\b(ldtilecfg|tileload|tdp|tilestore|tilerelease|j[a-z]+)", text)
    inside = " ".join(parts).partition("ldtilecfg ")[2].partition(" tilerelease")[0]
    loads = " ".join(["tileload"] * 4)
    assert inside == f"{loads} {loads} {' '.join(['tdp'] * 4)} jb {' '.join(['tilestore'] * 4)}"


@pytest.mark.parametrize(
    ("func", "cpu"),
    [
        (ops.dense(64, 64, 64, "bfloat16"), "znver5"),
        (ops.dense(60, 64, 64, "bfloat16"), CPU),
        (ops.dense(64, 64, 48, "int8"), CPU),
        (ops.dense(64, 64, 64, "float32"), CPU),
    ],
)
def test_other_products_have_no_such_sketch(func: PrimFunc, cpu: str) -> None:
    space = design_space(Task(func, CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")))
    assert not any("matrix_tiles" in sketch.tags for sketch in space.sketches)
