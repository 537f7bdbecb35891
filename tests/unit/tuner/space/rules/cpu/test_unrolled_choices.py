"""Transforms chosen by place: no test is left of the choice, and every candidate is right."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import pytest

from compiler import ops, te
from compiler.driver import emit, lower
from compiler.ir.core.nodes import Allocate, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.common.tile_buffers import KEY
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.space.rules.cpu.unrolled_choices import UnrolledChoices
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

WINOGRAD = [
    "conv2d_winograd:1,8,8,8,16,1,2",
    "conv2d_winograd:2,16,9,7,16,1,4",
    "conv2d_winograd:1,3,10,12,8,0,4,bias=True,activation=relu",
    "conv2d_winograd:1,5,6,6,7,1,2",
]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", WINOGRAD)
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    assert space.sketches
    check_candidates(func, space, each=1)


def test_only_the_product_is_left_to_search() -> None:
    space = design_space(Task(ops.conv2d_winograd(1, 16, 8, 8, 16, 1, 2), level(3)))
    assert {nest.facts.name for s in space.sketches for nest in s.nests} == {"products"}


def winograd_sketch(func: PrimFunc) -> Sketch:
    space = design_space(Task(func, level(3)))
    return next(sketch for sketch in space.sketches if sketch.name.startswith("winograd_4"))


@pytest.mark.parametrize("epilogue", [{}, {"bias": True, "activation": "relu"}])
def test_what_is_between_transforms_stays_in_strips(epilogue: dict[str, Any]) -> None:
    """Only what the products read and write is as large as the image."""
    func = ops.conv2d(1, 32, 24, 24, 48, 3, 1, 1, **epilogue)
    program = winograd_sketch(func).trace.apply_to(func).func
    allocated = [n.buffer for n in walk_stmts(lower(program, level(3))) if isinstance(n, Allocate)]
    large = {buffer.name for buffer in allocated if prod(static_shape(buffer)) > 16 * 36 * 24}
    assert large == {"data_tiles", "kernel_tiles", "products"}


def test_transformed_weights_are_written_in_the_panels_that_products_read() -> None:
    func = ops.conv2d(1, 32, 24, 24, 48, 3, 1, 1)
    program = winograd_sketch(func).trace.apply_to(func).func
    written = [site.block for site in sites(program) if KEY in dict(site.block.annotations)]
    assert [block.name for block in written] == ["kernel_tiles"]


def test_weights_are_read_in_rows_and_transposed_in_registers() -> None:
    """Neighbours in memory are loaded together; only broadcasts insert an element, the first."""
    func = ops.conv2d(1, 32, 24, 24, 32, 3, 1, 1)
    text = emit(winograd_sketch(func).trace.apply_to(func).func, level(3)).text
    assert "gather" not in text
    assert not re.search(r"insertelement .*, i64 [1-9]", text)


def chosen(extent: int) -> PrimFunc:
    A = te.placeholder((16, 32), "float32", name="A")

    def element(i: te.Value, y: te.Value, x: te.Value) -> te.Value:
        return te.if_then_else(i == 0, A[y, x] * 2.0, te.if_then_else(i == 1, A[y, x] + 1.0, 0.0))

    return te.create_prim_func([A, te.compute((extent, 16, 32), element, name="B")])


def test_nothing_is_asked_where_the_choice_is_unrolled() -> None:
    draft = SketchBuilder.begin(chosen(3), level(3))
    UnrolledChoices().apply(draft)
    text = emit(draft.schedule.func, level(3)).text
    assert "select" not in text
    assert "mask" not in text


def test_long_axes_are_left_alone() -> None:
    draft = SketchBuilder.begin(chosen(9), level(3))
    UnrolledChoices().apply(draft)
    assert not draft.scheduled
