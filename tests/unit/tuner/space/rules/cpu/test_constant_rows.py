"""A row times constant weights in few bits: vectors of columns, and correct candidates."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from compiler import ops, te
from compiler.backends.backend import backend_of
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import build
from compiler.ir.analysis.constant_params import KEY as CONSTANTS
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.schedule.schedule import Schedule
from compiler.target.cpu import CpuTarget
from tests.targets import here
from tuner.space.generate import design_space
from tuner.task import Task

ROWS = [
    "dense_int4:1,250,96,32,constant=W+scale",
    "dense_int4:1,128,96,32,zero_point=True,constant=W+scale+zero_point:bfloat16",
    "dense_int8:1,250,96,32,constant=W+scale",
    "dense_int8:1,120,96,constant=W+scale:bfloat16",
    "quantized_dense:1,250,96,constant=W+scale",
    "quantized_dense:1,128,96,reduce_range=True,constant=W+scale",
    "quantized_dense:1,120,98,constant=W+scale",  # groups of four do not divide the sum
]
OTHERS = [
    "dense_int4:1,128,96,32,constant=W",  # the scales may change
    "dense_int4:1,128,96,32",
    "dense:1,128,96,constant=W",  # bound by memory, not by arithmetic
    "softmax:16,100",
]


def schedules(func: PrimFunc, target: CpuTarget) -> list[Schedule]:
    """Return up to three schedules of each sketch with panels."""
    space = design_space(Task(func, target))
    numbers = [n for n, sketch in enumerate(space.sketches) if sketch.name.startswith("panels")]
    drawn = [(n, c) for n in numbers for c in space.draw(n, 3, np.random.default_rng(0))]
    return [space.sketches[n].candidate(c).trace.apply_to(func) for n, c in drawn]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", ROWS)
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    inputs = random_inputs(func, 0)
    constants = {buffer.name: inputs[buffer.name] for buffer in constant_params(func)}
    expected = interpret(func, inputs)
    candidates = schedules(func, here(num_cores))
    assert candidates
    for schedule in candidates:
        module = build(schedule, here(num_cores), constants)
        output = poisoned(func.buffers[-1])
        module(inputs["A"], output)
        compare(func, {func.buffers[-1].name: output}, expected)
        module.close()


@pytest.mark.parametrize("spec", OTHERS)
def test_other_programs_have_no_panels(spec: str) -> None:
    assert schedules(ops.from_spec(spec), here()) == []


@pytest.mark.parametrize("is_first", [True, False])
def test_another_product_of_the_program_is_read_in_rows_all_the_same(is_first: bool) -> None:
    row, weights = te.placeholder((1, 96), "uint8", "A"), te.placeholder((128, 96), "int8", "W")
    other, matrix = te.placeholder((1, 128), name="B"), te.placeholder((96, 128), name="V")
    steps, columns = te.reduce_axis((0, 96), "k"), te.reduce_axis((0, 128), "l")
    bytes_product = te.compute(
        (1, 128),
        lambda i, j: te.sum(
            row[i, steps].astype("int32") * weights[j, steps].astype("int32"), axis=steps
        ),
        name="C",
    )
    float_product = te.compute(
        (1, 96), lambda i, j: te.sum(other[i, columns] * matrix[j, columns], axis=columns), name="D"
    )
    outputs = [bytes_product, float_product] if is_first else [float_product, bytes_product]
    func = te.create_prim_func([row, weights, other, matrix, *outputs])
    func = replace(func, attrs=(*func.attrs, (CONSTANTS, (1,))))
    target = CpuTarget("cpu -mcpu=znver5 -num-cores=1")
    names = [sketch.name for sketch in design_space(Task(func, target)).sketches]
    assert names == ["dots/dots", "panels/dots" if is_first else "dots/panels"]


def assembly(spec: str, cpu: str) -> str:
    """Return the instructions of the first candidate with panels."""
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    func = ops.from_spec(spec)
    schedule = schedules(func, target)[0]
    source = backend_of(target).emit_with_constants(schedule.func, constant_params(func), target)
    return disassemble(source.kernel.text, target)


@pytest.mark.parametrize(
    ("cpu", "options", "instruction"),
    [
        ("znver5", "", r"vpdpbusd\s.*%zmm"),
        ("alderlake", "", r"vpdpbusd\s.*%ymm"),
        ("znver3", "reduce_range=True,", r"vpmaddubsw\s.*%ymm"),
        ("neoverse-n1", "", r"\b[us]dot\b"),
    ],
)
def test_bytes_are_multiplied_in_groups_of_four(cpu: str, options: str, instruction: str) -> None:
    text = assembly(f"quantized_dense:1,128,96,{options}constant=W+scale", cpu)
    assert re.search(instruction, text), text
    assert not re.search(r"\b(vpmulld|mla)\b", text), text


@pytest.mark.parametrize("cpu", ["znver3", "znver4", "neoverse-n1"])
def test_columns_are_summed_in_vectors_without_adding_lanes(cpu: str) -> None:
    text = assembly("dense_int4:1,128,96,32,constant=W+scale", cpu)
    assert re.search(r"\b(vfmadd|fmla)", text), text
    assert not re.search(r"\b(vextract\w+|vhaddps|faddp)\b", text), text
