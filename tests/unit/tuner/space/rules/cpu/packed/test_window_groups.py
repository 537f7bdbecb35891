"""Images of few channels in bytes: the rows of windows are padded to groups of steps."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import ops
from compiler.backends.backend import backend_of
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.ir.analysis.constant_params import constant_params
from compiler.ir.core.program import PrimFunc
from compiler.passes.cpu.hoist_constants import constant_copies
from compiler.target.cpu import CpuTarget
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task

ZEN4 = CpuTarget("cpu -mcpu=znver4 -num-cores=1")
PADDED = {
    "quantized_conv2d:1,3,12,10,16,7,2,3,layout=NHWC,input_zero_point=7": 24,
    "quantized_conv2d:1,3,12,10,16,7,2,3,bias=true": 8,
    "quantized_conv2d:1,3,9,10,32,3,2,1,layout=NHWC,zero_point=-5:int8": 12,
    "quantized_conv2d:2,1,8,8,16,7,2,3,input_zero_point=3": 8,
    # These images end with their last windows.
    "quantized_conv2d:1,3,9,9,16,3,1,1,input_zero_point=7": 4,
    "quantized_conv2d:1,3,11,9,16,3,2,0,layout=NHWC": 12,
    "quantized_conv2d:2,3,9,11,16,3,2,0": 4,
}
NOT_PADDED = {
    "channels have groups": "quantized_conv2d:1,8,9,10,16,3,2,1,layout=NHWC",
    "floats": "conv2d:1,3,12,10,16,7,2,3",
}


def blocked(space: SketchSpace) -> list[int]:
    return [n for n, sketch in enumerate(space.sketches) if sketch.name.startswith("blocked")]


@pytest.mark.parametrize("spec", PADDED)
def test_every_candidate_is_correct(spec: str) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here()))
    check_candidates(func, space, blocked(space), each=2)


@pytest.mark.parametrize("spec", PADDED)
def test_rows_are_padded_to_groups_of_four(spec: str) -> None:
    space = design_space(Task(ops.from_spec(spec), ZEN4))
    nests = [space.sketches[n].nests[0] for n in blocked(space)]
    assert nests
    for nest in nests:
        assert nest.dot.size == 4
        assert nest.facts.axes[-1].extent == PADDED[spec]


@pytest.mark.parametrize("spec", PADDED)
def test_rows_are_padded_to_pairs_without_dot_products_of_four(spec: str) -> None:
    """AVX2 multiplies pairs of 16-bit integers, to which the bytes of the image are converted."""
    space = design_space(Task(ops.from_spec(spec), level(3)))
    nests = [space.sketches[n].nests[0] for n in blocked(space)]
    assert nests
    for nest in nests:
        assert nest.dot.size == 2
        assert PADDED[spec] - 4 < nest.facts.axes[-1].extent <= PADDED[spec]
        assert nest.facts.axes[-1].extent % 2 == 0


@pytest.mark.parametrize("reason", NOT_PADDED)
def test_other_rows_stay_as_they_are(reason: str) -> None:
    space = design_space(Task(ops.from_spec(NOT_PADDED[reason]), ZEN4))
    programs = ["\n".join(sketch.trace.as_python()) for sketch in space.sketches]
    assert programs
    assert not any("pad_einsum" in program for program in programs)


def candidate(spec: str) -> PrimFunc:
    func = ops.from_spec(spec)
    space = design_space(Task(func, ZEN4))
    (number,) = blocked(space)
    (choices,) = space.draw(number, 1, np.random.default_rng(0))
    return space.sketches[number].candidate(choices).trace.apply_to(func).func


STEM = "quantized_conv2d:1,3,32,32,16,7,2,3,layout=NHWC,constant=W"
STEMS = (STEM, STEM.replace("NHWC", "NCHW"))
"""The windows of neighbouring pixels share bytes: 18 of 24, and 6 of 8."""


def test_padded_weights_are_packed_ahead() -> None:
    func = candidate(STEM)
    (copy,) = constant_copies(func.body, set(constant_params(func)))
    assert copy.name.endswith("_pad")


@pytest.mark.parametrize("stem", STEMS)
def test_four_bytes_of_an_image_are_one_load(stem: str) -> None:
    func = candidate(stem)
    source = backend_of(ZEN4).emit_with_constants(func, constant_params(func), ZEN4)
    text = disassemble(source.kernel.text, ZEN4)
    loops = re.findall(r"(?:(?!\bj\w+\b).)*vpdpbusd(?:(?!\bj\w+\b).)*", text, re.DOTALL)
    assert loops
    assert not any(re.search(r"\b(movzbl|vpinsrb|vpgather\w+)\b", loop) for loop in loops)


def test_large_convolutions_of_bytes_have_no_sketch_without_groups() -> None:
    for spec in ("1,3,64,64,32,3,2,1", "1,96,14,14,64,1"):
        func = ops.from_spec(f"quantized_conv2d:{spec},layout=NHWC")
        names = [sketch.name for sketch in design_space(Task(func, ZEN4)).sketches]
        assert names == ["blocked"]
