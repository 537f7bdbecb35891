"""A row times constant weights in few bits: vectors of columns, and correct candidates."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import ops
from compiler.backends.backend import backend_of
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import build
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
