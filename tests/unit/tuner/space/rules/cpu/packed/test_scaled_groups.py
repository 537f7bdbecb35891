"""Few rows by weights of 4 bits: groups of the sum in registers, and scaled as a whole."""

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
from compiler.passes.cpu.hoist_constants import constant_copies
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tests.targets import here, level, runs_here
from tests.unit.tuner.candidates import check_candidates
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.space.tables.knob import ChoiceKnob
from tuner.task import Task

NAME = "scaled_groups"


def grouped(space: SketchSpace) -> list[int]:
    return [i for i, sketch in enumerate(space.sketches) if NAME in sketch.name.split("/")]


@pytest.mark.parametrize(
    "func",
    [
        ops.dense_int4(5, 40, 64, 16, "bfloat16", zero_point=True),
        ops.dense_int4(32, 17, 96, 48, "bfloat16"),
        ops.dense_int4(6, 64, 64, 32, zero_point=True),
        ops.dense_int4(5, 17, 96, 48),
        ops.dense_int4(3, 5, 64, 32, zero_point=True),
        ops.dense_int4(4, 512, 32, 16, "bfloat16", zero_point=True),
    ],
)
def test_every_candidate_is_correct(func: PrimFunc) -> None:
    space = design_space(Task(func, here()))
    assert grouped(space)
    check_candidates(func, space, grouped(space), each=1)


@runs_here(3)
def test_a_tile_of_rows_may_be_partial_where_registers_are_few() -> None:
    func = ops.dense_int4(17, 24, 64, 32, "bfloat16")
    space = design_space(Task(func, level(3)))
    assert grouped(space)
    check_candidates(func, space, grouped(space), each=2)


@pytest.mark.parametrize("rows", [4, 16])
def test_constants_are_packed_ahead_in_4_bits(rows: int) -> None:
    constants = "W+scale+zero_point"
    func = ops.dense_int4(rows, 40, 96, 48, "bfloat16", zero_point=True, constant=constants)
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)
    space = design_space(Task(func, here()))
    index = grouped(space)[0]
    (choices,) = space.draw(index, 1, np.random.default_rng(0))
    scheduled = space.sketches[index].candidate(choices).trace.apply_to(func)
    copies = constant_copies(scheduled.func.body, set(constant_params(func)))
    assert sorted(copy.name for copy in copies) == [
        "W_global",
        "scale_global",
        "zero_point_global",
    ]
    packed = {buffer.name: inputs[buffer.name] for buffer in constant_params(func)}
    module = build(scheduled, here(), packed)
    output = poisoned(func.buffers[-1])
    module(inputs["A"], output)
    compare(func, {func.buffers[-1].name: output}, expected)
    module.close()


def machine_code(func: PrimFunc, target: Target) -> str:
    """Return the code of a candidate, with its constants packed ahead."""
    space = design_space(Task(func, target))
    index = grouped(space)[0]
    (choices,) = space.draw(index, 1, np.random.default_rng(0))
    scheduled = space.sketches[index].candidate(choices).trace.apply_to(func).func
    source = backend_of(target).emit_with_constants(scheduled, constant_params(func), target)
    return disassemble(source.kernel.text, CpuTarget.of(target))


def test_weights_are_unpacked_without_shuffles_to_pairs_of_dot_products() -> None:
    func = ops.dense_int4(16, 64, 256, 128, "bfloat16", constant="W+scale")
    text = machine_code(func, CpuTarget("cpu -mcpu=znver4 -num-cores=1"))
    assert re.search(r"\bvdpbf16ps\b", text), text
    assert re.search(r"\bvpmovzxbw\b", text), text
    assert not re.search(r"\b(vpgather\w+|vpinsr\w|vpunpck\w+|vpermt2w)\b", text), text


def test_weights_for_rows_of_float32_are_converted_once_for_all_rows() -> None:
    func = ops.dense_int4(4, 64, 256, 128, constant="W+scale")
    text = machine_code(func, CpuTarget("cpu -mcpu=znver4 -num-cores=1"))
    conversions, products = (len(re.findall(name, text)) for name in ("vcvtdq2ps", "vfmadd"))
    assert 0 < 4 * conversions <= products
    assert not re.search(r"\b(vpgather\w+|vpinsr\w|vpunpck\w+|vpermt2w)\b", text), text


@pytest.mark.parametrize(
    ("columns", "cores", "panels"), [(4096, 1, 2), (4096, 16, 1), (4064, 1, 1), (64, 1, 1)]
)
def test_panels_share_rows_if_they_leave_enough_blocks(
    columns: int, cores: int, panels: int
) -> None:
    space = design_space(Task(ops.dense_int4(16, columns, 256, 128), level(4, cores)))
    programs = ["\n".join(space.sketches[n].trace.as_python()) for n in grouped(space)]
    assert programs
    assert all(f"[None, {panels}, " in program for program in programs)


def test_tiles_of_columns_divide_them_if_some_do() -> None:
    space = design_space(Task(ops.dense_int4(16, 4096, 256, 128), level(3)))
    (widths,) = {space.sketches[index].knobs[1] for index in grouped(space)}
    assert widths == ChoiceKnob((8, 16, 32))


def test_many_rows_and_small_groups_unpack_to_float32() -> None:
    for func in (
        ops.dense_int4(64, 64, 128, 64, "bfloat16"),
        ops.dense_int4(16, 64, 64, 8, "bfloat16"),
        ops.dense_int4(33, 64, 128, 64),
    ):
        assert not grouped(design_space(Task(func, here())))
