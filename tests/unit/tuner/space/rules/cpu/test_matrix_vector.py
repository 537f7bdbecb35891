"""Products of a vector and a large matrix: what the rule applies to, and correct candidates."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.nodes import BlockRealize, For, static_int
from compiler.ir.core.visit import walk_stmts
from compiler.passes.cpu.reduce_in_lanes import KEY
from tests.targets import here, level, without_tiles
from tests.unit.tuner.candidates import check_candidates
from tuner.space.generate import design_space
from tuner.space.rules.cpu.matrix_vector import MatrixVector
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.space.tables.nest import TiledNest
from tuner.task import Task

# 4 MiB: more than the second-level cache of the CPUs that tests run on.
ODD = "matmul:1,1501,701"
EVEN = "matmul:1,2048,512,bias=True,activation=relu"
# 17 MiB: more than eight second-level caches.
SEVERAL = [
    "matmul:3,1501,3001",
    "matmul:4,2048,2304,bias=True,activation=relu",
    "matmul:2,1501,6001:bfloat16",
]
OTHERS = [
    "matmul:9,1501,3001",  # nine rows use each element of the matrix nine times
    "matmul:2,1024,512",  # two rows, and the matrix fits the third-level cache
    "dense:3,1501,701",  # the rows of the matrix run along the sum
    "matmul:1,1,2000000",  # one sum
    "matmul:1,256,64",  # the matrix fits the second-level cache
    "matmul:1,64,20000",  # rows fit a register tile
    "dense:1,1501,701",  # the sum is contiguous: dot products of rows
    "row_sum:1501,701",
]


def streamed(spec: str, num_cores: int = 1) -> list[SketchBuilder]:
    draft = SketchBuilder.begin(ops.from_spec(spec), level(3, num_cores))
    return [d for d in MatrixVector().apply(draft) if d.name == ("streamed",)]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", [ODD, EVEN])
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    assert [sketch.name for sketch in space.sketches] == ["streamed"]
    check_candidates(func, space, each=5)


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", SEVERAL)
def test_several_vectors_share_the_loads_of_a_matrix(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    assert [sketch.name for sketch in space.sketches] == ["streamed"]
    check_candidates(func, space, each=4)


def test_a_matrix_is_packed_for_many_vectors_or_once_for_all_calls() -> None:
    names = {
        spec: {sketch.name for sketch in design_space(Task(ops.from_spec(spec), level(3))).sketches}
        for spec in (
            *("matmul:4,1501,3001", "matmul:6,1501,3001", "matmul:8,1501,3001"),
            "matmul:4,1501,3001,constant=B",
        )
    }
    few, several, many, constant = names.values()
    assert few == {"streamed"}
    assert several == {"streamed", "direct", "cached"}
    assert many == {*several, "packed", "packed_right"}
    assert constant == {"streamed", "packed", "packed_right"}


@pytest.mark.parametrize("spec", ["matmul:5,1501,3001", "matmul:8,1501,3001"])
def test_sums_of_several_streamed_vectors_fit_the_registers(spec: str) -> None:
    func = ops.from_spec(spec)
    (draft,) = streamed(spec)
    sketch = draft.finish()
    for choices in sketch.draw(8, np.random.default_rng(0)):
        program = sketch.candidate(choices).trace.apply_to(func).func
        inner = [static_int(n.extent) for n in walk_stmts(program.body) if isinstance(n, For)][-2:]
        assert np.prod(inner) // 8 <= 14


@pytest.mark.parametrize("spec", OTHERS)
def test_other_sums_are_left_alone(spec: str) -> None:
    assert streamed(spec) == []


@pytest.mark.parametrize("num_cores", [1, 6])
def test_the_output_of_a_block_stays_in_the_second_level_cache(num_cores: int) -> None:
    (draft,) = streamed("matmul:1,151936,64", num_cores)
    sketch = draft.finish()
    values = sketch.values(sketch.draw(200, np.random.default_rng(0)))
    (nest,) = sketch.nests
    assert isinstance(nest, TiledNest)
    output = nest.tables(values).footprints[0, 2]  # inside of the loop over blocks
    assert output.max() <= level(3).l2_bytes
    assert (nest.tables(values).level_extents[0] % num_cores == 0).all()


def test_a_row_is_read_in_one_run_before_the_next_rows() -> None:
    func = ops.from_spec("matmul:1,50257,768")
    (draft,) = streamed("matmul:1,50257,768")
    candidate = draft.finish().candidate([0] * 3)
    loops = [n for n in walk_stmts(candidate.trace.apply_to(func).func.body) if isinstance(n, For)]
    extents = [static_int(loop.extent) for loop in loops]
    assert [n for n in extents if n != 1] == [768 // 8, -(-50257 // 32), 8, 32]


@pytest.mark.parametrize("spec", ["lstm_cell:1,24,37", "gru_cell:1,16,8"])
def test_dot_products_of_a_cell_are_summed_in_lanes_some_rows_at_once(spec: str) -> None:
    func = ops.from_spec(spec)
    (sketch,) = design_space(Task(func, level(3))).sketches
    assert sketch.name == "dots/dots"
    candidate = sketch.candidate([0] * len(sketch.knobs))
    loops = [n for n in walk_stmts(candidate.trace.apply_to(func).func.body) if isinstance(n, For)]
    sums = [loop for loop in loops if any(key == KEY for key, _ in loop.annotations)]
    assert len(sums) == 2
    rows = [loop.body for loop in sums if isinstance(loop.body, For)]
    assert [loop.kind for loop in rows] == ["unrolled"] * 2
    check_candidates(func, design_space(Task(func, here())), each=2)


FEW = [
    "dense_int8:4,37,67",
    "dense:2,9,40,bias=true:bfloat16",
    "quantized_dense:8,5,33",
    "gru_cell:2,32,16",
    "dense:16,37,67",
    "dense:21,9,40",
    "dense:67,3,40",
    "matmul:67,3,37",
    "matmul:53,8,40,bias=true,activation=relu",
    "matmul:700,2,129:bfloat16",
]


@pytest.mark.parametrize("spec", FEW)
def test_a_few_vectors_share_the_rows_of_a_matrix(spec: str) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, without_tiles()))
    dots = [n for n, sketch in enumerate(space.sketches) if "dots" in sketch.name]
    assert 0 < len(dots) < len(space.sketches)
    check_candidates(func, space, dots, each=2)


def test_a_few_columns_are_copied_into_rows() -> None:
    space = design_space(Task(ops.matmul(2048, 3, 64), level(4)))
    index = next(n for n, sketch in enumerate(space.sketches) if sketch.name == "dots")
    candidate = space.sketches[index].candidate(space.enumerate(index)[0])
    func = candidate.trace.apply_to(ops.matmul(2048, 3, 64)).func
    blocks = [n.block for n in walk_stmts(func.body) if isinstance(n, BlockRealize)]
    (copied,) = [b.writes[0].buffer for b in blocks if b.name == "B_global"]
    assert [static_int(extent) for extent in copied.shape] == [3, 64]


@pytest.mark.parametrize("batch", [2, 8])
def test_sums_of_a_few_vectors_fit_the_registers(batch: int) -> None:
    space = design_space(Task(ops.dense_int8(batch, 64, 256), level(3)))
    (sketch,) = (sketch for sketch in space.sketches if sketch.name == "dots")
    values = sketch.values(sketch.draw(100, np.random.default_rng(0)))
    (nest,) = (nest for nest in sketch.nests if nest.facts.name == "C")
    tables = nest.tables(values)
    sums = tables.level_extents[6] / tables.vector_length
    assert (sums % batch == 0).all()
    assert (sums <= level(3).num_vector_registers - 3).all()


@pytest.mark.parametrize(("batch", "groups"), [(16, {8, 4}), (18, {6}), (32, {8, 4})])
def test_many_vectors_share_rows_in_groups_that_fit_the_registers(
    batch: int, groups: set[int]
) -> None:
    target = level(4)
    space = design_space(Task(ops.dense(batch, 64, 256), target))
    index, sketch = next((n, s) for n, s in enumerate(space.sketches) if s.name == "dots")
    tables = sketch.nests[0].tables(sketch.values(space.enumerate(index)))
    assert set(tables.extents[6, 0]) == groups
    assert (tables.extents[3, 0] * tables.extents[6, 0] == batch).all()
    sums = tables.level_extents[6] / tables.vector_length
    assert (sums <= target.num_vector_registers - 3).all()


@pytest.mark.parametrize(
    "spec",
    [
        "dense:9,37,67",
        "dense:40,37,67",
        "matmul:4,37,67",
        "conv1d:1,1,40,4,9",
        "batch_matmul:4,3,5,64",
    ],
)
def test_other_products_have_no_dot_products_of_rows(spec: str) -> None:
    sketches = design_space(Task(ops.from_spec(spec), level(3))).sketches
    assert all("dots" not in sketch.name for sketch in sketches)


@pytest.mark.parametrize(
    ("columns", "steps"), [(4096, "4, 2, 6, 3: 4 options"), (4100, "8, 4 ... 3: 7 options")]
)
def test_rows_do_not_exceed_the_sets_of_the_first_level_cache(columns: int, steps: str) -> None:
    (draft,) = streamed(f"matmul:1,{columns},512")
    assert str(draft.finish().knobs[-1]) == f"512 in pieces of {steps}"
