"""Convolutions in tile registers (AMX): their code is run with a model of the registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import ops
from compiler.driver import build, emit
from compiler.ir.analysis.constant_params import KEY as CONSTANTS
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


def conv2d(  # noqa: PLR0917
    ci: int,
    size: int,
    co: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    layout: str = "NHWC",
) -> PrimFunc:
    sizes = (1, ci, size, size, co, kernel, stride, padding)
    return ops.conv2d(*sizes, dtype="bfloat16", layout=layout)


CONVOLUTIONS = {
    "two lines of 14 pixels": (conv2d(32, 14, 32, 3, padding=1), 7 * 2 * 2 * 9, 1),
    "a last pair of one line": (conv2d(32, 7, 16, 3, padding=1), 4 * 2 * 9, 1),
    "channels first": (conv2d(32, 12, 32, 3, 1, 1, "NCHW"), 6 * 2 * 2 * 9, 1),
    "channels that are padded": (conv2d(35, 6, 18, 3, padding=1), 3 * 2 * 2 * 2 * 9, 1),
    "every second pixel": (conv2d(32, 32, 16, 3, 2, 1, "NCHW"), 8 * 2 * 9, 1),
    "lines of two blocks of tiles": (
        ops.conv1d(1, 32, 70, 16, 3, padding=1, dtype="bfloat16"),
        5 * 3,
        1,
    ),
    "windows of one pixel": (conv2d(64, 6, 32, 1), 3 * 2 * 2, 1),
    "channels first, windows of one pixel": (conv2d(64, 8, 32, 1, 1, 0, "NCHW"), 2 * 4 * 2, 2),
    "few channels": (conv2d(3, 14, 20, 3, 2, 1, "NCHW"), 4 * 2, 1),
    "few channels last": (conv2d(3, 11, 18, 5, 1, 2), 8 * 2 * 3, 1),
    "bytes of few channels": (ops.quantized_conv2d(1, 3, 9, 9, 24, 4, 1, 2), 7 * 2, 1),
    "bytes": (ops.quantized_conv2d(1, 64, 8, 8, 16, 3, 1, 1, bias=True), 4 * 2 * 9, 1),
}


@pytest.mark.parametrize(("func", "products", "sketches"), CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_candidates_are_correct_with_a_model_of_the_registers(
    func: PrimFunc, products: int, sketches: int
) -> None:
    space = design_space(Task(func, TARGET))
    assert all("matrix_tiles" in sketch.tags for sketch in space.sketches)
    inputs = random_inputs(func, 0)
    candidates = list(scheduled(func, space))
    assert len(candidates) == sketches
    for candidate in candidates:
        outputs, num_products = run_by_model(candidate, inputs, CPU, CpuTarget.of(here()))
        compare(func, outputs, interpret(func, inputs))
        assert num_products >= products


@pytest.mark.parametrize(
    ("func", "cpu"),
    [
        (conv2d(32, 14, 32, 3, padding=1), "znver5"),
        (conv2d(5, 14, 32, 3, padding=1), CPU),
        (conv2d(32, 3, 32, 3, padding=1), CPU),
        (ops.conv2d(1, 32, 14, 14, 32, 3), CPU),
        (ops.conv2d(1, 64, 14, 14, 64, 3, groups=2, dtype="bfloat16"), CPU),
        (ops.depthwise_conv2d(1, 64, 14, 14, 3, dtype="bfloat16"), CPU),
    ],
    ids=["a CPU without", "few channels", "short lines", "float32", "groups", "depthwise"],
)
def test_other_convolutions_have_no_such_sketch(func: PrimFunc, cpu: str) -> None:
    space = design_space(Task(func, CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")))
    assert space.sketches
    assert not any("matrix_tiles" in sketch.tags for sketch in space.sketches)


def test_two_lines_share_each_load_of_weights() -> None:
    func = conv2d(32, 14, 16, 3, padding=1)
    (candidate, *_) = scheduled(func, design_space(Task(func, TARGET)))
    text = emit(candidate, TARGET).text
    counts = [text.count(f"call void @llvm.x86.{name}") for name in ("tileloadd64", "tdpbf16ps")]
    assert counts == [3, 2]


Sizes = Mapping[str, Any]
OPERATORS: dict[str, Callable[[Sizes, str], PrimFunc]] = {
    "conv2d": lambda sizes, layout: ops.conv2d(
        **sizes, dtype="bfloat16", layout=layout, bias=True, activation="relu"
    ),
    "float32": lambda sizes, layout: ops.conv2d(
        **sizes, dtype="bfloat16", layout=layout, out_dtype="float32"
    ),
    "quantized_conv2d": lambda sizes, layout: ops.quantized_conv2d(
        **sizes, layout=layout, bias=True
    ),
    "zero points": lambda sizes, layout: ops.quantized_conv2d(
        **sizes, dtype="int8", layout=layout, input_zero_point=3, zero_point=-5
    ),
}
SIZES = st.fixed_dictionaries(
    {
        "n": st.integers(1, 2),
        "ci": st.integers(32, 140),
        "h": st.integers(12, 24),
        "w": st.integers(12, 70),
        "co": st.integers(8, 70),
        "kernel": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "stride": st.integers(1, 2),
        "padding": st.integers(0, 1),
        "dilation": st.integers(1, 2),
    }
)
FEW_CHANNELS = st.fixed_dictionaries(
    {
        "n": st.integers(1, 2),
        "ci": st.integers(3, 4),
        "h": st.integers(14, 24),
        "w": st.integers(16, 70),
        "co": st.integers(2, 70),
        "kernel": st.tuples(st.integers(4, 7), st.integers(4, 8)),
        "stride": st.integers(1, 2),
        "padding": st.integers(0, 3),
    }
)


@needs_tiles
@settings(max_examples=40)
@given(
    st.sampled_from(sorted(OPERATORS)),
    SIZES | FEW_CHANNELS,
    st.sampled_from(["NHWC", "NCHW"]),
    st.sampled_from([1, 2]),
    st.booleans(),
    st.integers(0, 1 << 16),
)
def test_candidates_are_correct_on_this_cpu(  # noqa: PLR0917
    name: str, sizes: Sizes, layout: str, cores: int, is_constant: bool, seed: int
) -> None:
    func, target = OPERATORS[name](sizes, layout), here(cores)
    inputs = random_inputs(func, seed)
    expected = interpret(func, inputs)
    if is_constant:
        func = func.with_attr(CONSTANTS, (1,))
    candidates = list(scheduled(func, design_space(Task(func, target)), seed))
    assert candidates
    for candidate in candidates:
        assert "llvm.x86.tdp" in emit(candidate, target).text
        compare(func, run(build(candidate, target), func, inputs), expected)
