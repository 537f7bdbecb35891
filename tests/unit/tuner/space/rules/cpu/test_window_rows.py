"""Windows that slide over rows: what they apply to, and that every candidate is right."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.driver import emit
from compiler.ir.core.nodes import (
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cpu.window_rows import WindowRows
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.task import Task

SLIDING = [
    "depthwise_conv2d:1,6,11,13,3,1,1",
    "depthwise_conv2d:2,4,12,16,3,2,1",
    "depthwise_conv2d:1,3,13,11,3,2,1",
    "depthwise_conv2d:1,4,17,18,5,3,2,bias=True,activation=relu",
    "depthwise_conv2d:1,4,14,20,3,2,2,2",
    "max_pool2d:1,5,12,16,3,2,1",
    "max_pool2d:1,5,12,16,2,2",
    "max_pool2d:1,3,10,9,3,1,1",
    "avg_pool2d:1,5,12,16,2,2",
    "depthwise_conv2d:1,2,13,71,3,1,1",  # neither 13 rows nor 71 columns have good divisors
]
OTHERS = ["conv2d:1,16,10,10,16,3,1,1", "matmul:16,16,16", "row_sum:24,40", "softmax:8,16"]


def sliding(func: PrimFunc) -> list[SketchBuilder]:
    (inlined,) = AutoInline().apply(SketchBuilder.begin(func, level(3)))
    return [d for d in WindowRows().apply(inlined) if "window_rows" in d.tags]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", SLIDING)
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    (index,) = (i for i, s in enumerate(space.sketches) if "window_rows" in s.tags)
    check_candidates(func, space, [index], each=4)


@pytest.mark.parametrize("spec", OTHERS)
def test_sums_over_channels_are_left_alone(spec: str) -> None:
    assert sliding(ops.from_spec(spec)) == []


def test_long_rows_of_a_prime_number_of_columns_are_cut_into_vectors() -> None:
    (draft,) = sliding(ops.depthwise_conv2d(1, 96, 113, 113, 3, 1, 1))
    assert "113 in pieces of 64, 40 ... 8: 6 options" in map(str, draft.finish().knobs)


def test_rows_that_are_stepped_over_are_taken_apart_and_nothing_is_gathered() -> None:
    func = ops.depthwise_conv2d(1, 8, 32, 32, 3, 2, 1)
    (draft,) = sliding(func)
    (padding,) = (s for s in sites(draft.schedule.func) if s.block.name == "pad_temp")
    assert static_shape(padding.block.writes[0].buffer) == (1, 8, 34, 2, 17)
    sketch = draft.finish()
    middle = [len(knob.options) // 2 for knob in sketch.knobs]
    text = emit(sketch.candidate(middle).trace.apply_to(func).func, level(3)).text
    assert "gather" not in text
