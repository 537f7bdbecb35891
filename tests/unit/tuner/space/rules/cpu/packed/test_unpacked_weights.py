"""Weights of 4 and 8 bits are unpacked in the panels of packed products, group by group."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import ops, te
from compiler.backends.backend import backend_of
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import build, emit
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.passes.cpu.hoist_constants import constant_copies
from compiler.target.cpu import CpuTarget
from tests.targets import here
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.product_roles import find_product
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.space.rules.cpu.packed.unpacked_weights import unpacked_periods
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.task import Task


def packed(space: SketchSpace) -> list[int]:
    return [i for i, sketch in enumerate(space.sketches) if "packed_right" in sketch.tags]


@pytest.mark.parametrize(
    "func",
    [
        ops.dense_int4(33, 9, 64),
        ops.dense_int4(33, 33, 64, 64, "bfloat16", zero_point=True),
        ops.dense_int8(5, 9, 64, 32),
        ops.dense_int8(9, 33, 21, dtype="bfloat16"),
    ],
)
def test_every_candidate_is_correct(func: PrimFunc) -> None:
    space = design_space(Task(func, here()))
    assert len(packed(space)) >= 2
    check_candidates(func, space, packed(space), each=1)


@pytest.mark.parametrize(
    "func",
    [
        ops.dense_int4(34, 70, 128, constant="W+scale"),
        ops.dense_int4(16, 40, 24, 12, "bfloat16", zero_point=True, constant="W+scale+zero_point"),
    ],
)
def test_constants_that_are_packed_ahead_are_unpacked_correctly(func: PrimFunc) -> None:
    inputs = random_inputs(func, 0)
    expected = interpret(func, inputs)
    constants = {buffer.name: inputs[buffer.name] for buffer in constant_params(func)}
    space = design_space(Task(func, here()))
    for index in packed(space):
        (choices,) = space.draw(index, 1, np.random.default_rng(0))
        scheduled = space.sketches[index].candidate(choices).trace.apply_to(func)
        module = build(scheduled, here(), constants)
        output = poisoned(func.buffers[-1])
        module(inputs["A"], output)
        compare(func, {func.buffers[-1].name: output}, expected)
        module.close()


def periods(func: PrimFunc) -> tuple[int, ...]:
    draft = SketchBuilder.begin(func, here())
    product = find_product(draft.block_facts()["C"])
    assert product is not None
    return unpacked_periods(draft, product.right)


def test_periods_are_the_group_and_its_half() -> None:
    assert periods(ops.dense_int4(40, 8, 256, 128)) == (128, 64)
    assert periods(ops.dense_int4(40, 8, 64, 32, zero_point=True)) == (32, 16)
    assert periods(ops.dense_int8(4, 8, 256, 128)) == (128,)


def test_other_operands_have_none() -> None:
    A, B = te.placeholder((4, 64), name="A"), te.placeholder((8, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    positive = te.compute((8, 64), lambda j, k: te.max(B[j, k], 0), name="positive")
    C = te.compute((4, 8), lambda i, j: te.sum(A[i, k] * positive[j, k], axis=k), name="C")
    assert periods(te.create_prim_func([A, B, C])) == ()
    assert periods(ops.dense(4, 8, 64)) == ()
    assert periods(ops.dense_int8(4, 8, 64)) == ()


def machine_code(func: PrimFunc, cpu: str) -> str:
    """Return the code of a candidate of the first sketch."""
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    space = design_space(Task(func, target))
    (choices,) = space.draw(0, 1, np.random.default_rng(0))
    scheduled = space.sketches[0].candidate(choices).trace.apply_to(func).func
    return disassemble(emit(scheduled, target).text, target)


@pytest.mark.parametrize(("cpu", "shift"), [("znver3", "vpsrld"), ("neoverse-n1", "ushr")])
def test_a_row_is_multiplied_by_whole_bytes_instead_of_shifted_halves(cpu: str, shift: str) -> None:
    text = machine_code(ops.dense_int4(1, 32, 256), cpu)
    assert re.search(r"\b(vcvtdq2ps|[us]cvtf)\b", text), text
    assert not re.search(rf"\b{shift}\b", text), text


def test_constants_are_unpacked_without_shuffles() -> None:
    target = CpuTarget("cpu -mcpu=znver4 -num-cores=1")
    func = ops.dense_int4(48, 64, 256, 128, constant="W+scale")
    space = design_space(Task(func, target))
    # Panels of the left operand are transposed.
    indices = [i for i in packed(space) if "packed_left" not in space.sketches[i].tags]
    assert indices
    for index in indices:
        (choices,) = space.draw(index, 1, np.random.default_rng(0))
        scheduled = space.sketches[index].candidate(choices).trace.apply_to(func).func
        source = backend_of(target).emit_with_constants(scheduled, constant_params(func), target)
        text = disassemble(source.kernel.text, target)
        assert re.search(r"\bvpmovzxbd\b", text), text
        assert not re.search(r"\b(vpunpck\w+|vunpck\w+|vperm\w+|vshuf\w+)\b", text), text


@pytest.mark.parametrize("cpu", ["znver5", "neoverse-n1"])
@pytest.mark.parametrize(
    "func", [ops.dense_int4(40, 32, 256, 128), ops.dense_int8(8, 32, 256, 128)]
)
def test_panels_are_unpacked_in_vectors(func: PrimFunc, cpu: str) -> None:
    text = machine_code(func, cpu)
    assert re.search(r"\b(vcvtdq2ps|[us]cvtf)\b", text), text
    assert not re.search(r"\b(vcvtsi2ss\w*|vpinsr\w|vpgather\w+|vgather\w+)\b", text), text


@pytest.mark.parametrize(
    ("func", "names"),
    [
        (ops.dense_int4(48, 64, 1024, 128, constant="W+scale"), ["W_global", "scale_global"]),
        (ops.dense_int4(48, 64, 1024, 128, constant="W"), []),
        (ops.dense_int8(16, 64, 1024, 128, constant="W+scale"), ["weights_global"]),
        (ops.dense_int8(16, 64, 1024, constant="W+scale"), ["W_global"]),
        (ops.dense(16, 64, 1024, constant="W"), ["W_global"]),
        (ops.dense(16, 64, 1024, "bfloat16", constant="W"), ["W_global"]),
    ],
)
def test_panels_many_times_larger_than_constant_weights_are_made_in_each_run(
    func: PrimFunc, names: list[str]
) -> None:
    space = design_space(Task(func, here()))
    for index in packed(space):
        (choices,) = space.draw(index, 1, np.random.default_rng(0))
        scheduled = space.sketches[index].candidate(choices).trace.apply_to(func).func
        copies = constant_copies(scheduled.body, set(constant_params(func)))
        assert sorted(buffer.name for buffer in copies) == names
