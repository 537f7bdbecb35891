from collections.abc import Sequence

import numpy as np
import pytest

from compiler import ops
from compiler.driver import lower
from compiler.ir.core.nodes import Allocate, static_int
from compiler.ir.core.visit import walk_stmts
from compiler.target.cpu import CpuTarget
from tuner.space.filter.static_filter import passes
from tuner.space.generate import design_space
from tuner.space.rules.cpu.rule_names import CPU_RULE_NAMES
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

AVX2 = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")  # 16 registers of 8 floats
AVX512 = CpuTarget("cpu -mcpu=x86-64-v4 -num-cores=1")  # 32 registers of 16 floats


def direct(spec: str, target: CpuTarget) -> Sketch:
    unpacked = set(CPU_RULE_NAMES) - {"packed_products"}
    space = design_space(Task(ops.from_spec(spec), target), unpacked)
    return next(sketch for sketch in space.sketches if sketch.name == "direct")


Decisions = Sequence[tuple[int, ...]]


def passes_together(sketch: Sketch, target: CpuTarget, *candidates: Decisions) -> list[bool]:
    choices = [[k.choice(d) for k, d in zip(sketch.knobs, c, strict=True)] for c in candidates]
    assert not any(None in row for row in choices), "these are options"
    return [bool(kept) for kept in passes(sketch, np.array(choices, np.int64), target)]


def passes_one(sketch: Sketch, target: CpuTarget, *decisions: tuple[int, ...]) -> bool:
    return passes_together(sketch, target, decisions)[0]


@pytest.mark.parametrize(
    ("rows", "columns", "fits"),
    [
        (4, 16, True),
        (5, 16, True),
        (6, 16, True),
        (4, 24, True),  # 12 + 3 + 1 registers: all of them
        (7, 16, False),  # 14 + 2 + 1
        (6, 24, False),  # 18 + 3 + 1
        (14, 8, True),  # 14 + 1 + 1
        (15, 8, False),
    ],
)
def test_a_register_tile_that_spills_is_dropped(rows: int, columns: int, fits: bool) -> None:
    sketch = direct("matmul:840,48,64", AVX2)
    i, j, k = (840 // rows, 1, 1, rows), (48 // columns, 1, 1, columns), (1, 64, 1)
    assert passes_one(sketch, AVX2, i, j, k) is fits


def test_wider_machines_hold_larger_tiles() -> None:
    decisions = (60, 1, 1, 14), (1, 1, 1, 32), (1, 64, 1)  # 28 + 2 + 1 of 32 registers
    assert passes_one(direct("matmul:840,32,64", AVX512), AVX512, *decisions)
    assert not passes_one(direct("matmul:840,32,64", AVX2), AVX2, *decisions)


def test_vectors_that_are_mostly_empty_are_dropped() -> None:
    sketch = direct("matmul:64,64,64", AVX2)
    i, k = (16, 1, 1, 4), (1, 64, 1)
    assert passes_one(sketch, AVX2, i, (8, 1, 1, 8), k)
    assert passes_one(sketch, AVX2, i, (16, 1, 1, 4), k)
    assert not passes_one(sketch, AVX2, i, (32, 1, 1, 2), k)


def test_short_vectors_pass_where_the_extents_allow_no_others() -> None:
    sketch = direct("matmul:64,2,64", AVX2)
    assert passes_one(sketch, AVX2, (16, 1, 1, 4), (1, 1, 1, 2), (1, 64, 1))


def test_too_much_unrolled_code_is_dropped() -> None:
    sketch = direct("matmul:16,128,64", AVX512)
    i, j = (2, 1, 1, 8), (1, 4, 1, 32)
    assert passes_one(sketch, AVX512, i, j, (1, 8, 8))


def test_an_output_tile_beyond_the_cache_is_dropped() -> None:
    sketch = direct("matmul:8192,8192,16", AVX2)
    i, j, k = (1, 1, 2048, 4), (1, 1, 512, 16), (4, 4, 1)
    assert not passes_one(sketch, AVX2, i, j, k)
    near = (2048, 1, 1, 4), (512, 1, 1, 16)
    assert passes_one(sketch, AVX2, *near, k)


@pytest.mark.parametrize("target", [AVX2, AVX512])
@pytest.mark.parametrize("columns", [1, 127, 251, 2 * 251, 1009])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_some_candidate_passes_whatever_divides_the_extents(
    columns: int, dtype: str, target: CpuTarget
) -> None:
    space = design_space(Task(ops.from_spec(f"matmul:13,{columns},{columns}:{dtype}"), target))
    rng = np.random.default_rng(0)
    assert space.sketches
    assert all(len(space.draw(i, 1, rng)) for i in range(len(space.sketches)))


def test_large_blocks_that_leave_cores_idle_are_dropped() -> None:
    both = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=2")
    sketch = direct("matmul:128,64,64", both)
    j, k = (1, 4, 1, 16), (1, 64, 1)
    assert passes_together(sketch, both, [(2, 16, 1, 4), j, k], [(1, 32, 1, 4), j, k]) == [
        True,
        False,
    ]
    assert passes_one(sketch, both, (1, 32, 1, 4), j, k), "there is nothing better to choose from"
    small = direct("matmul:32,16,8", both)
    pair = [(2, 4, 1, 4), (1, 1, 1, 16), (1, 8, 1)], [(1, 8, 1, 4), (1, 1, 1, 16), (1, 8, 1)]
    assert passes_together(small, both, *pair) == [True, True]


def test_packed_rows_that_outgrow_the_second_cache_are_dropped() -> None:
    func, limit = ops.matmul(1024, 1024, 1024), 0.75 * AVX2.l2_bytes
    sketches = design_space(Task(func, AVX2)).sketches
    sketch = next(sketch for sketch in sketches if sketch.name == "packed_whole")
    choices = sketch.draw(400, np.random.default_rng(0))
    kept = passes(sketch, choices, AVX2)
    for row in choices[kept][:6]:
        lowered = lower(sketch.candidate(row).trace.apply_to(func).func, AVX2)
        buffers = {n.buffer.name: n.buffer for n in walk_stmts(lowered) if isinstance(n, Allocate)}
        panels = buffers["A_global"]
        assert 4 * np.prod([static_int(extent) for extent in panels.shape]) <= limit
    assert 0 < kept.sum() < len(kept)


@pytest.mark.parametrize("name", ["packed_whole", "packed_right_whole"])
def test_packed_tiles_want_few_instructions(name: str) -> None:
    """4 rows of 3 vectors need 19 instructions for 12 multiply-adds; 3 of 2 need 11 for 6."""
    space = design_space(Task(ops.matmul(480, 480, 512), AVX2))
    index = next(i for i, sketch in enumerate(space.sketches) if sketch.name == name)
    sketch = space.sketches[index]
    rows = space.draw(index, 64, np.random.default_rng(0))
    assert len(rows) > 8
    for row in sketch.values(rows):
        tables = sketch.nests[0].tables(row[None])
        vectors, height = tables.vector_length[0] / 8, tables.rows[0]
        instructions = height * vectors + height + vectors
        steps = tables.level_extents[5, 0]
        assert (instructions + 5 / steps) / (height * vectors) < 1.12 * 1.7


def test_windows_that_reduce_one_step_at_a_time_are_dropped() -> None:
    space = design_space(Task(ops.conv2d(1, 64, 56, 56, 64, 3, 1, 1), AVX2))
    (index,) = (i for i, sketch in enumerate(space.sketches) if sketch.name == "blocked")
    sketch = space.sketches[index]
    rows = space.draw(index, 200, np.random.default_rng(0))
    steps = sketch.nests[0].tables(sketch.values(rows)).level_extents[5]
    assert len(rows) > 100
    assert steps.min() >= 3


@pytest.mark.parametrize(
    ("pixels", "unrolled", "fits"),
    [
        (7, 7, True),  # 7 + 2 registers, and 19 pixels in 7 steps
        (14, 7, False),  # 14 + 2, and 33 pixels
        (16, 7, False),
        (28, 1, True),  # each step has its own pixels
    ],
)
def test_unrolled_windows_whose_pixels_fill_the_registers_are_dropped(
    pixels: int, unrolled: int, fits: bool
) -> None:
    space = design_space(Task(ops.conv2d(1, 3, 224, 224, 64, 7, 2, 3), AVX512))
    (sketch,) = (sketch for sketch in space.sketches if sketch.name == "blocked")
    columns, steps = (112 // pixels, 1, pixels), (7 // unrolled, unrolled)
    assert passes_one(sketch, AVX512, (1, 4), (112, 1, 1), columns, (7, 1), steps) is fits


@pytest.mark.parametrize("cores", [1, 2, 4, 16])
@pytest.mark.parametrize(
    "operator",
    ["matmul:80,80,80", "matmul:65,65,251", "matmul:128,200,128", "dense:251,65,512"],
)
def test_some_packed_candidate_is_left_on_any_number_of_cores(operator: str, cores: int) -> None:
    target = CpuTarget(f"cpu -mcpu=x86-64-v3 -num-cores={cores}")
    space = design_space(Task(ops.from_spec(operator), target))
    assert sum(space.count(i).number for i in range(len(space.sketches))) >= 8


def test_neighbours_of_one_dot_product_are_one_step() -> None:
    """Windows in steps of two share no pixel if a dot product takes a whole row of each."""
    vnni = CpuTarget("cpu -mcpu=znver4 -num-cores=1")
    spec = "quantized_conv2d:1,3,224,224,32,3,2,1,constant=W+scale"
    (sketch,) = design_space(Task(ops.from_spec(spec), vnni)).sketches
    rows, columns = (3, 1), (1, 4)
    for y, x in [((8, 1, 14), (1, 112, 1)), ((1, 112, 1), (1, 8, 14)), ((8, 2, 7), (7, 8, 2))]:
        assert passes_one(sketch, vnni, y, x, rows, columns)
