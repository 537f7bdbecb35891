"""Elementwise blocks over contiguous memory: knobs, loops, and correct candidates."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.nodes import BinOp, For, static_int
from compiler.ir.core.visit import walk
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task

SHAPES = [
    "relu:70",
    "relu:31,37,11",  # one row, whose last vector is partial
    "add:12,32,64",
    "batch_norm:1,12,7,7",  # rows of 49 with a scale each
    "multiply:3,5,40,other=1x5x1",
    "embedding:50,96,7",
]


def space(spec: str, num_cores: int = 1) -> SketchSpace:
    return design_space(Task(ops.from_spec(spec), level(3, num_cores)))


def loops(spec: str, *choices: int, num_cores: int = 1) -> list[For]:
    (sketch,) = space(spec, num_cores).sketches
    func = sketch.candidate(choices).trace.apply_to(ops.from_spec(spec)).func
    return list(sites(func)[0].loops)


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", SHAPES)
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    check_candidates(func, design_space(Task(func, here(num_cores))), each=3)


@pytest.mark.parametrize(
    "spec", ["relu:1,256,56,56", "silu:1,320,64,64", "add:1,512,7,7", "add:1000,63"]
)
def test_elementwise_operators_have_streams_and_vectors(spec: str) -> None:
    (sketch,) = space(spec).sketches
    assert space(spec).count(0).number >= 32
    assert list(map(str, sketch.knobs))[:2] == [
        "one of 1, 2, 3, 4: 4 options",
        "one of 64, 32 ... 40: 8 options",
    ]


def test_streams_advance_together_over_parts_of_one_row() -> None:
    step, stream, vector = loops("relu:16,64,64", 3, 3)
    assert [n.kind for n in (step, stream, vector)] == ["serial", "unrolled", "vectorized"]
    assert [static_int(n.extent) for n in (step, stream, vector)] == [65536 // 4 // 8, 4, 8]


@pytest.mark.parametrize(
    ("spec", "streams"),
    # 784 KiB, in parts of a multiple of 4 KiB except thirds; three operands of four parts.
    [("relu:64,56,56", "one of 1, 2, 3, 4"), ("add:64,56,56", "one of 1, 2, 3: 3 options")],
)
def test_streams_do_not_exceed_the_sets_of_the_first_level_cache(spec: str, streams: str) -> None:
    assert str(space(spec).sketches[0].knobs[0]).startswith(streams)


def test_rows_do_not_exceed_the_sets_of_the_first_level_cache() -> None:
    (sketch,) = space("multiply:1,96,32,32,other=1x96x1x1").sketches  # rows of 4 KiB
    assert str(sketch.knobs[0]) == "96 in pieces of 1, 2, 4, 3: 4 options"


def test_cores_share_a_long_row_and_not_a_short_one() -> None:
    assert loops("relu:16,64,64", 0, 0, 0, num_cores=2)[0].kind == "parallel"
    assert all(n.kind != "parallel" for n in loops("relu:3,32", 0, num_cores=2))


def test_rows_with_operands_of_their_own_stay_rows() -> None:
    # 49 elements in vectors of 8; three channels advance together.
    extents = [static_int(n.extent) for n in loops("multiply:1,96,7,7,other=1x96x1x1", 4, 1)]
    assert [n for n in extents if n != 1] == [32, 7, 3, 8]


def test_facts_of_fused_axes_keep_the_other_ones() -> None:
    (site,) = sites(ops.from_spec("multiply:2,96,7,8,other=1x96x1x1"))
    facts = block_facts(site)
    assert facts is not None
    fused = facts.fused(2, 3)
    assert [axis.extent for axis in fused.axes] == [2, 96, 56]
    assert fused.write.shape == (2, 96, 56)
    assert fused.write.strides == (96 * 56, 56, 1)
    (scale,) = [read for read in fused.reads if read.buffer != facts.reads[0].buffer]
    assert scale.strides == (0, 1, 0)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_an_axis_that_selects_a_source_is_not_fused(axis: int) -> None:
    """Vectors across its boundary are gathered: 33 x 172 x 88 took three times as long (Zen 4)."""
    func = ops.concat(4, 3, 40, 6, sizes=(1, 4), axis=axis)
    (sketch,) = design_space(Task(func, level(4))).sketches
    (site,) = sites(sketch.trace.apply_to(func).func)
    position = site.realize.iter_values[axis]
    assert not [n for n in walk(position) if isinstance(n, BinOp) and n.op in ("//", "%")]
    check_candidates(func, design_space(Task(func, here())), each=3)
