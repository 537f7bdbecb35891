"""The sketches that the rules make, and that each of their candidates is right."""

import numpy as np
import pytest

from compiler import ops, te
from compiler.ir.core.nodes import (
    IntImm,
    Load,
    Store,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.script.parser import parse
from compiler.target.cpu import CpuTarget
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.candidate import default_candidate
from tuner.space.analysis.block_facts import sites
from tuner.space.design_space import Point, SketchSpace, distinct
from tuner.space.filter.static_filter import passes
from tuner.space.generate import design_space
from tuner.task import Task

LEVEL_3 = level(3)
PROGRAMS = [
    "matmul:24,32,20",
    "matmul:1,32,8",
    "matmul:7,13,11",
    "matmul_bias_relu:16,24,8",
    "mm_relu:16,16,16",
    "dense:16,24,8",
    "batch_matmul:3,8,16,4",
    "conv2d:1,4,8,8,8,3,1,1",
    "conv2d:1,3,11,11,4,3,2,1",
    "conv2d:1,8,6,6,8,3,1,1,1,2",
    "depthwise_conv2d:1,4,10,10,3,1,1",
    "row_sum:24,40",
    "softmax:12,40",
    "softmax:7",  # its only loop is of a sum: none can run in parallel
    "layer_norm:8,24",
    "transpose:24,18",
    "add:12,30",
    "relu:96",
]


def space_of(func: PrimFunc, target: CpuTarget = LEVEL_3) -> SketchSpace:
    return design_space(Task(func, target))


def names(func: PrimFunc) -> list[str]:
    return [sketch.name for sketch in space_of(func).sketches]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", PROGRAMS)
def test_every_candidate_builds_and_is_right(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = space_of(func, here(num_cores))
    assert space.sketches, "a rule applies to each of these"
    check_candidates(func, space, each=2)


PACKED = ["packed", "packed_right", "packed_whole", "packed_right_whole"]


def test_a_product_is_packed_or_written_directly_or_cached() -> None:
    assert names(ops.matmul(32, 32, 2048)) == [*PACKED, "direct", "cached"]
    # Blocks of so short a sum are not worth it, and the whole sum is another sketch's.
    assert names(ops.matmul(32, 32, 32)) == [*PACKED[2:], "direct", "cached"]
    assert names(ops.matmul(32, 32, 4)) == ["direct", "cached"]


def test_an_elementwise_consumer_is_fused() -> None:
    assert names(ops.mm_relu(32, 32, 32)) == [*PACKED, "fused"]
    assert names(ops.matmul_bias_relu(32, 32, 32)) == [*PACKED, "fused"]


def test_padding_is_done_ahead_or_tilewise() -> None:
    assert names(ops.conv2d(1, 4, 8, 8, 4, 3, 1, 1)) == [
        "direct/ahead",
        "direct/tilewise",
        "cached/ahead",
        "cached/tilewise",
    ]


def test_a_chain_of_elementwise_blocks_becomes_one() -> None:
    a = te.placeholder((64,), "float32", name="A")
    b = te.compute((64,), lambda i: a[i] + 1, name="B")
    c = te.compute((64,), lambda i: b[i] * 2, name="C")
    d = te.compute((64,), lambda i: te.max(c[i], 0), name="D")
    func = te.create_prim_func([a, d])
    (sketch,) = space_of(func).sketches
    assert sketch.name == "spatial"
    scheduled = sketch.trace.apply_to(func).func
    assert [site.block.name for site in sites(scheduled)] == ["D"]


def test_what_a_reduction_reads_again_is_not_inlined() -> None:
    """It would be computed again at each step."""
    a = te.placeholder((8, 16), "float32", name="A")
    w = te.placeholder((16, 8), "float32", name="W")
    b = te.compute((8, 16), lambda i, j: te.exp(a[i, j]), name="B")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(b[i, k] * w[k, j], axis=k), name="C")
    func = te.create_prim_func([a, w, c])
    for sketch in space_of(func).sketches:
        blocks = {site.block.name for site in sites(sketch.trace.apply_to(func).func)}
        assert "B" in blocks


@pytest.mark.parametrize("spec", ["matmul:32,32,32", "relu:64,64", "conv2d:1,4,8,8,8,3,1,1"])
def test_loops_are_parallel_only_on_several_cores(spec: str) -> None:
    func = ops.from_spec(spec)

    def uses(target: CpuTarget) -> list[bool]:
        sketches = space_of(func, target).sketches
        return [any(i.name == "parallel" for i in s.trace.instructions) for s in sketches]

    assert not any(uses(level(3)))
    assert all(uses(level(3, num_cores=2)))


def test_the_vectorized_loop_is_contiguous_in_the_output() -> None:
    func = ops.conv2d(1, 4, 8, 8, 4, 3, 1, 1)
    space = space_of(func)
    for index, sketch in enumerate(space.sketches):
        choices = space.draw(index, 1, np.random.default_rng(0))[0]
        scheduled = sketch.candidate(choices).trace.apply_to(func).func
        (update,) = (s for s in sites(scheduled) if s.block.name.endswith("_update"))
        innermost = update.loops[-1]
        assert innermost.kind == "vectorized"
        assert innermost.var in set(walk(update.realize.iter_values[3]))
        assert innermost.var not in set(walk(update.realize.iter_values[1]))


SHARED_LOOPS = """
@T.prim_func
def shared(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32"),
           C: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.block("first"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
        with T.block("second"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""

COMPUTED_ITERATOR = """
@T.prim_func
def computed(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("B"):
            v = T.axis.spatial(32, i * 4 + j)
            B[v] = A[v] * T.float32(2)
"""


@pytest.mark.parametrize("text", [SHARED_LOOPS, COMPUTED_ITERATOR])
def test_blocks_that_no_rule_knows_are_left_as_they_are(text: str) -> None:
    assert space_of(parse(text)).sketches == ()


def test_a_program_without_decisions_has_an_empty_space() -> None:
    assert space_of(ops.matmul(1, 1, 1)).sketches == ()


def test_facts_of_the_program_stay_true_in_every_sketch() -> None:
    """Inlining and caching must not leave the tables with other accesses than the program's."""
    func = ops.matmul_bias_relu(16, 24, 8)
    sketch = space_of(func).sketches[-1]
    scheduled = sketch.trace.apply_to(func).func
    (update,) = (s for s in sites(scheduled) if s.block.name.endswith("_update"))
    store = update.block.body
    assert isinstance(store, Store)
    loaded = {n.buffer.name for n in walk(store.value) if isinstance(n, Load)}
    assert {r.buffer for r in sketch.nests[0].facts.reads} == loaded - {store.buffer.name}


def test_candidates_and_points_translate_into_each_other() -> None:
    space = space_of(ops.conv2d(1, 4, 8, 8, 8, 3, 1, 1))
    rng = np.random.default_rng(0)
    for index in range(len(space.sketches)):
        for row in space.draw(index, 5, rng).tolist():
            point = Point(index, tuple(row))
            assert space.point(space.candidate(point)) == point


def test_a_candidate_of_another_space_has_no_point() -> None:
    space = space_of(ops.matmul(32, 32, 32))
    other = space_of(ops.matmul(24, 32, 20))
    rng = np.random.default_rng(0)
    foreign = other.candidate(Point(2, tuple(other.draw(2, 1, rng)[0].tolist())))
    assert space.point(foreign) is None
    assert space.point(default_candidate()) is None


def test_draws_are_different_and_pass_the_filter() -> None:
    space = space_of(ops.conv2d(1, 8, 14, 14, 16, 3, 1, 1))
    for index, sketch in enumerate(space.sketches):
        rows = space.draw(index, 100, np.random.default_rng(0))
        assert len(rows) == min(100, space.count(index).number)
        assert len(distinct(rows)) == len(rows)
        assert passes(sketch, rows, CpuTarget.of(space.target)).all()
        assert (space.canonical(index, rows) == rows).all()


def test_a_small_sketch_is_drawn_until_it_is_empty() -> None:
    space = space_of(ops.relu(96))
    (sketch,) = space.sketches
    rows = space.draw(0, 1000, np.random.default_rng(0))
    every = np.arange(sketch.size)[:, None]
    assert (
        sorted(rows.tolist()) == every[passes(sketch, every, CpuTarget.of(space.target))].tolist()
    )


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", ["relu:33,77", "relu:16,20,3", "add:7,9", "relu:5,1,33"])
def test_ragged_rows_are_right(spec: str, num_cores: int) -> None:
    test_every_candidate_builds_and_is_right(spec, num_cores)


def test_ragged_rows_become_one_row_or_stay_whole() -> None:
    (joined,) = space_of(ops.from_spec("relu:16,20,3")).sketches
    assert any(i.name == "fuse" for i in joined.trace.instructions)
    (rows,) = space_of(ops.from_spec("relu:33,77")).sketches
    site = sites(rows.trace.apply_to(ops.from_spec("relu:33,77")).func)[0]
    assert site.loops[-1].kind == "vectorized"
    assert site.loops[-1].extent == IntImm(77)


def test_a_space_is_derived_once_for_programs_that_read_the_same() -> None:
    space = design_space(Task(ops.matmul(24, 32, 20), level(3)))
    assert design_space(Task(ops.matmul(24, 32, 20), level(3))) is space
    assert design_space(Task(ops.matmul(24, 32, 20), level(3, num_cores=2))) is not space
    assert design_space(Task(ops.matmul(24, 32, 20), level(3)), ["spatial_blocks"]) is not space


def test_a_space_is_derived_anew_for_blocks_of_other_names() -> None:
    func = ops.matmul(24, 32, 20)
    renamed = parse(func.script().replace('sblock("C")', 'sblock("product")'))
    space = design_space(Task(renamed, level(3)))
    assert space is not design_space(Task(func, level(3)))
    candidate = space.candidate(Point(0, tuple(space.enumerate(0)[0].tolist())))
    candidate.trace.apply_to(renamed)
