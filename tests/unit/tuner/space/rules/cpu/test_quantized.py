"""Packed schedules of quantized operators, on bytes at the ends of their types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit, lower
from compiler.ir.core.nodes import Allocate, static_shape
from compiler.ir.core.visit import walk_stmts
from compiler.target.cpu import CpuTarget
from tests.targets import here
from tests.unit.tuner.candidates import computed
from tuner.space.generate import design_space
from tuner.task import Task

SPECS = [
    "quantized_dense:6,24,66,bias=true,zero_point=100",
    "quantized_dense:6,16,33,out_dtype=uint8:int8",
    "quantized_conv2d:1,8,4,4,16,3,1,1,layout=NHWC,input_zero_point=255",
    "quantized_dense:6,24,66,bias=true,input_zero_point=3,reduce_range=true",
    "quantized_conv2d:1,8,4,4,16,3,1,1,layout=NHWC,input_zero_point=127,reduce_range=true",
]


def ends(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Return the least and the largest integers of a type, and a few between."""
    limits = np.iinfo(dtype)
    return rng.choice([limits.min, limits.max, limits.max, 0, 1], shape).astype(dtype)


@pytest.mark.parametrize("spec", SPECS)
def test_sums_of_extremes_are_scaled_to_ties_and_beyond_both_ends(spec: str) -> None:
    func = ops.from_spec(spec)
    rng = np.random.default_rng(0)
    inputs = {
        buffer.name: ends(buffer.dtype, static_shape(buffer), rng)
        for buffer in func.buffers[:-1]
        if buffer.dtype in ("int8", "uint8")
    }
    channels = next(static_shape(b) for b in func.buffers if b.name == "scale")
    # Halves and quarters of sums are ties; most of the others saturate.
    inputs["scale"] = rng.choice([0.5, 0.25, 2**-12, -(2**-13)], channels).astype(np.float32)
    if any(buffer.name == "bias" for buffer in func.buffers):
        inputs["bias"] = rng.integers(-300, 300, channels).astype(np.int32)
    expected = ops.reference(spec)(*(inputs[b.name] for b in func.buffers[:-1]))
    limits = np.iinfo(expected.dtype)
    assert {limits.min, limits.max} < set(expected.ravel().tolist())
    space = design_space(Task(func, here()))
    names = [n for n, sketch in enumerate(space.sketches) if sketch.nests[0].dot.size > 1]
    assert names
    for index in names[:4]:
        (choices,) = space.draw(index, 1, rng)
        got = computed(func, space.sketches[index].candidate(choices), here(), inputs)
        np.testing.assert_array_equal(got["requantized"], expected)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("quantized_dense:24,96,64,bias=true", "packed_whole"),
        ("quantized_conv2d:1,16,8,8,32,3,1,1,layout=NHWC", "blocked"),
    ],
)
def test_sums_are_scaled_tile_by_tile(spec: str, name: str) -> None:
    """No buffer of 32-bit sums is larger than a register tile, whose copy in registers it is."""
    func = ops.from_spec(spec)
    target = CpuTarget("cpu -mcpu=znver3 -num-cores=1")
    space = design_space(Task(func, target))
    (index,) = [n for n, sketch in enumerate(space.sketches) if sketch.name == name]
    for choices in space.draw(index, 6, np.random.default_rng(0)):
        scheduled = space.sketches[index].candidate(choices).trace.apply_to(func)
        stmts = walk_stmts(lower(scheduled.func, target))
        buffers = [stmt.buffer for stmt in stmts if isinstance(stmt, Allocate)]
        sums, registers = (b for b in buffers if b.dtype == "int32")
        assert {sums.scope, registers.scope} == {"global", "local"}
        assert static_shape(sums) == static_shape(registers)


@pytest.mark.parametrize(
    ("spec", "instruction"),
    [
        ("quantized_dense:24,96,64,reduce_range=true", "vpmaddubsw"),
        ("quantized_conv2d:1,16,8,8,32,1,layout=NHWC,reduce_range=true", "vpmaddubsw"),
        ("quantized_dense:24,96,64", "vpmaddwd"),
    ],
)
def test_packed_sums_of_7_bit_activations_add_pairs_in_16_bits(spec: str, instruction: str) -> None:
    target = CpuTarget("cpu -mcpu=znver3 -num-cores=1")
    func = ops.from_spec(spec)
    space = design_space(Task(func, target))
    for index, sketch in enumerate(space.sketches):
        if not sketch.name.startswith(("packed", "blocked")):
            continue
        (choices,) = space.draw(index, 1, np.random.default_rng(0))
        scheduled = sketch.candidate(choices).trace.apply_to(func).func
        text = disassemble(emit(scheduled, target).text, target)
        assert instruction in text
        assert ("vpmaddubsw" in text) == ("vpmaddubsw" in instruction)
