"""Packed convolutions: what is packed how, and that every candidate computes the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit
from compiler.ir.core.nodes import (
    For,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.block_facts import BlockFacts, block_facts, sites
from tuner.space.analysis.operand_roles import OperandRoles, find_roles
from tuner.space.generate import design_space
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cpu.packed.packed_windows import PackedWindows
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.knob import ChoiceKnob
from tuner.task import Task

LEVEL_3 = level(3)
PACKED = [
    "conv1d:1,6,19,16,3,2,1",
    "conv1d:2,16,9,8,3,1,1",
    "conv2d:1,8,9,9,16,3,1,1",
    "conv2d:1,32,7,7,24,3,1,1",
    "conv2d:1,4,11,13,16,3,1,1",
    "conv2d:2,3,15,13,16,5,2,2",
    "conv2d:1,5,11,9,8,3,1,2,2",
    "conv2d:1,16,8,8,16,1",
    "conv2d:1,8,9,10,16,3,2,1,bias=True,activation=relu",
    "conv2d:1,6,10,10,16,3,1,1,layout=NHWC",
    "conv3d:1,4,5,6,7,8,3,1,1",
    "conv2d:1,8,6,7,48,3,1,2,2,2,bias=true",
    "conv2d:1,16,8,8,16,3,1,1,1,4",
    "conv2d:1,32,9,9,32,3,2,1,1,4,bias=true,activation=relu",
    "conv2d_transpose:1,8,5,6,16,4,2,1",
    "conv2d_nchwc:1,16,6,7,32,3,1,1,1,8,16",
]
INTEGERS = [
    "conv2d:1,8,5,4,16,3,2,1,1,2,out_dtype=int32:int8",
    "quantized_conv2d:1,6,5,4,8,3,1,1,bias=true,input_zero_point=3",
    "quantized_conv2d:1,16,6,5,8,1,layout=NHWC,zero_point=-5:int8",
    "conv2d_nchwc:1,16,5,4,16,3,1,1,1,8,8,out_dtype=int32:int8",
]
NOT_PACKED = [
    "matmul:32,32,32",
    "batch_matmul:3,16,16,16",
    "depthwise_conv2d:1,16,10,10,3,1,1",
    "max_pool2d:1,16,10,10,3,2",
    "conv2d:1,4,8,8,6,3,1,1",  # no vectors of output channels
    "conv2d:1,16,8,8,16,3,1,1,1,8",  # nor of those of a group
    "row_sum:24,40",
    "depthwise_conv2d:1,8,6,6,3,1,1,multiplier=8",
]


def packed(func: PrimFunc, target: Target = LEVEL_3) -> list[SketchBuilder]:
    (inlined,) = AutoInline().apply(SketchBuilder.begin(func, target))
    drafts = PackedWindows().apply(inlined)
    return [draft for draft in drafts if "packed" in draft.tags]


def roles_of(spec: str) -> tuple[BlockFacts, OperandRoles]:
    found = [block_facts(site) for site in sites(ops.from_spec(spec))]
    pairs = [(facts, find_roles(facts, LEVEL_3)) for facts in found if facts is not None]
    (pair,) = [(facts, roles) for facts, roles in pairs if roles is not None]
    return pair


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", PACKED)
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    packed = [i for i, sketch in enumerate(space.sketches) if "packed" in sketch.tags]
    check_candidates(func, space, packed, each=3)


@pytest.mark.parametrize("spec", INTEGERS)
def test_every_candidate_of_integers_is_correct(spec: str) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here()))
    packed = [i for i, sketch in enumerate(space.sketches) if "packed" in sketch.tags]
    check_candidates(func, space, packed, each=1)


@pytest.mark.parametrize("spec", [*PACKED, *INTEGERS])
def test_convolutions_of_every_kind_are_packed(spec: str) -> None:
    assert len(packed(ops.from_spec(spec))) == 1


@pytest.mark.parametrize("spec", NOT_PACKED)
def test_what_has_no_packed_form_is_left_alone(spec: str) -> None:
    assert packed(ops.from_spec(spec)) == []


@pytest.mark.parametrize("width", [13, 19, 37, 149])
def test_tiles_of_pixels_need_not_divide_a_row(width: int) -> None:
    (draft,) = packed(ops.conv2d(1, 8, width, width, 16, 3, 1, 1))
    sizes = [knob.values for knob in draft.knobs if isinstance(knob, ChoiceKnob)]
    assert any(max(values) >= 5 for values in sizes[1::2])


@pytest.mark.parametrize(("cpu", "most"), [("znver3", 8), ("znver4", 30)])
def test_a_row_of_pixels_fills_the_registers_if_multiply_adds_load_them(
    cpu: str, most: int
) -> None:
    (draft,) = packed(
        ops.conv1d(1, 16, 3000, 48, 3, 1, 1), CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    )
    sizes = [int(knob.options[:, -1].max()) for knob in draft.knobs]
    assert most in sizes


@pytest.mark.parametrize(
    ("cpu", "spec", "tile"),
    [
        ("znver4", "conv2d:1,16,8,8,24,3,1,1", 8),
        ("skylake-avx512", "conv2d:1,16,8,8,24,3,1,1", None),
        ("skylake-avx512", "conv2d:1,16,8,8,8,3,1,1", 8),
        ("znver4", "conv2d:1,16,8,8,4,3,1,1", 4),
    ],
)
def test_parts_of_vectors_are_used_if_whole_ones_do_not_divide_the_channels(
    cpu: str, spec: str, tile: int | None
) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    found = [block_facts(site) for site in sites(ops.from_spec(spec))]
    tiles = [r.vector_tile for facts in found if facts and (r := find_roles(facts, target))]
    assert tiles == ([] if tile is None else [tile])


@pytest.mark.parametrize(("groups", "tags"), [(64, {True, False}), (4, {True})])
def test_large_convolutions_of_small_groups_also_have_sketches_without_packing(
    groups: int, tags: set[bool]
) -> None:
    space = design_space(Task(ops.conv2d(1, 512, 56, 56, 512, 3, 1, 1, 1, groups), LEVEL_3))
    assert {"packed" in sketch.tags for sketch in space.sketches} == tags


def test_the_vectors_are_output_channels() -> None:
    facts, roles = roles_of("conv2d:1,64,56,56,64,3,1,1")
    assert facts.axes[roles.vector].extent == 64
    assert (roles.vector_tile, roles.channel_tile) == (16, 16)
    assert roles.weights.shape == (64, 64, 3, 3)


def test_a_register_tile_lies_in_one_group() -> None:
    (draft,) = packed(ops.conv2d(1, 16, 6, 6, 32, 3, 1, 1, 1, 4))
    (nest,) = [nest for nest in draft.nests if nest.facts.name == "conv2d_nchw"]
    axes = zip(nest.facts.axes, nest.columns, strict=True)
    tiled = [axis.extent for axis, columns in axes if columns[6] is not None]
    assert tiled == [6, 6]


def test_few_channels_are_not_put_side_by_side() -> None:
    _, roles = roles_of("conv2d:1,3,32,32,64,7,2,3")
    assert roles.channel_tile == 1


def test_rows_that_do_not_divide_get_shorter_vectors() -> None:
    """Of 7 x 7 places, 7 rows of one vector multiply more a load than one row of two."""
    _, roles = roles_of("conv2d:1,32,7,7,32,3,1,1")
    assert roles.vector_tile == 8


# Shuffles of bytes: what operands cost that do not lie in groups.
SHUFFLES = r"\b(?:vpunpck\w+|vpshuf\w+|vpinsr\w+|vpermt\w+|zip[12]|uzp[12]|tbl)\b"


@pytest.mark.parametrize(
    ("cpu", "instruction"),
    [("znver3", "vpmaddwd"), ("znver5", "vpdpbusd"), ("neoverse-n1", "sdot")],
)
def test_groups_of_channels_are_read_as_dot_products_take_them(cpu: str, instruction: str) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    func = ops.from_spec("conv2d_nchwc:1,16,8,8,32,3,1,0,1,16,16,out_dtype=int32,constant=W:int8")
    space = design_space(Task(func, target))
    (index,) = [n for n, sketch in enumerate(space.sketches) if "packed" in sketch.tags]
    (choices,) = space.draw(index, 1, np.random.default_rng(0))
    scheduled = space.sketches[index].candidate(choices).trace.apply_to(func)
    text = disassemble(emit(scheduled.func, target).text, target)
    assert re.search(rf"\b{instruction}\b", text), text
    assert not re.search(SHUFFLES, text), text
    assert not re.search(r"\b(?:vpmulld|mla)\b", text), text


def test_an_elementwise_consumer_takes_up_the_tiles() -> None:
    func = ops.conv2d(1, 8, 8, 8, 16, 3, 1, 1, bias=True, activation="relu")
    (draft,) = packed(func)
    names = [site.block.name for site in sites(draft.schedule.func)]
    assert len(names) == len(set(names)) == 5  # padding in two, weights, sums, what follows


def test_what_lies_in_blocks_already_is_not_copied() -> None:
    (draft,) = packed(ops.conv2d_nchwc(1, 32, 8, 8, 32, 3, 1, 1))
    names = {site.block.name for site in sites(draft.schedule.func)}
    assert names == {"pad_temp_pad_const", "pad_temp", "conv2d_nchwc", "conv2d_nchwc_global"}


def test_two_cores_share_every_part() -> None:
    (draft,) = packed(ops.conv2d(1, 8, 8, 8, 16, 3, 1, 1), level(3, num_cores=2))
    body = draft.schedule.func.root.body
    parallel = [n for n in walk_stmts(body) if isinstance(n, For) and n.kind == "parallel"]
    assert len(parallel) == 3  # weights, image, sums
