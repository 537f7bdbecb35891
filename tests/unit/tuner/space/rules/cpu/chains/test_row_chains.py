"""Chains of row reductions run row by row, through all blocks, whatever their extents and axes."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops, te
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ops import tensors
from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.target.target import Target
from tests.targets import here, level, runs_here
from tests.unit.tuner.candidates import check_candidates, computed
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.analysis.row_axes import row_axes
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task

ROWS = {
    "softmax": ops.softmax(6, 40),
    "softmax of odd rows": ops.softmax(3, 37),
    "softmax of one row": ops.softmax(40),
    "softmax of padded rows": ops.softmax(3, 2, 24, lengths=True),
    "softmax of small types": ops.softmax(4, 33, dtype="float16"),
    "log_softmax": ops.log_softmax(2, 3, 29),
    "layer_norm": ops.layer_norm(6, 24),
    "layer_norm over two axes": ops.layer_norm(4, 6, 7, axis=1),
    "rms_norm": ops.rms_norm(2, 3, 40),
    "rms_norm with a residual": ops.rms_norm(6, 24, residual=True),
    "group_norm": ops.group_norm(2, 6, 3, 8, groups=3, activation="silu"),
    "softmax of a prime number of rows": ops.softmax(11, 24),
    "row_sum": ops.row_sum(33, 77),
    "sum of all": ops.sum(5, 6, 7),
    "mean": ops.mean(5, 6, 7, axis=(1, 2)),
    "mean of all": ops.mean(40),
    "sum of bytes": ops.sum(4, 32, axis=1, dtype="int8"),
    "largest": ops.max(7, 9, axis=1),
    "matrix times vector": ops.linear_relu(1, 16, 24),
    "weights of 4 bits": ops.dense_int4(1, 7, 96),
    "weights of 4 bits with zero points": ops.dense_int4(1, 5, 96, 48, "bfloat16", zero_point=True),
    "weights of 8 bits": ops.dense_int8(1, 7, 67),
    "weights of 8 bits in groups": ops.dense_int8(1, 5, 96, 48, "bfloat16"),
}
COLUMNS = {
    "softmax": ops.softmax(3, 10, 16, axis=1),
    "softmax of odd columns": ops.softmax(5, 33, axis=0),
    "log_softmax": ops.log_softmax(6, 5, 16, axis=1),
    "softmax of nothing": ops.softmax(3, 1),
}


@pytest.mark.parametrize(
    "func",
    [
        ops.softmax(64, 50257),
        ops.layer_norm(197, 768),
        ops.softmax(77, 77),
        ops.dense(1, 1009, 768),
        ops.avg_pool2d(1, 97, 7, 7, 7),
    ],
)
def test_tiles_of_rows_need_not_divide_them(func: PrimFunc) -> None:
    for number in (2, 3, 4):
        space = space_of(func, level(number))
        assert space.count(0).number >= 32


def space_of(func: PrimFunc, target: Target) -> SketchSpace:
    return design_space(Task(func, target))


def check(func: PrimFunc, num_cores: int, name: str) -> None:
    """Check a few candidates of the only sketch."""
    assert [sketch.name for sketch in space_of(func, level(3, num_cores)).sketches] == [name]
    check_candidates(func, space_of(func, here(num_cores)), each=3)


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("func", ROWS.values(), ids=ROWS.keys())
def test_rows_are_correct(func: PrimFunc, num_cores: int) -> None:
    check(func, num_cores, "rows")


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("func", COLUMNS.values(), ids=COLUMNS.keys())
def test_columns_are_correct(func: PrimFunc, num_cores: int) -> None:
    check(func, num_cores, "columns")


@pytest.mark.parametrize(
    "func",
    [ops.matmul(16, 16, 16), ops.max_pool2d(1, 3, 8, 8, 2, 2)],
    ids=["a product", "small windows"],
)
def test_others_do_not_reduce_in_lanes(func: PrimFunc) -> None:
    for sketch in space_of(func, level(3)).sketches:
        notes = [i.arguments for i in sketch.trace.instructions if i.name == "annotate"]
        assert not any(KEY in dict(note).values() for note in notes)


def test_rows_are_the_axes_that_all_blocks_share_and_none_reduces() -> None:
    facts = [block_facts(site) for site in sites(ops.softmax(4, 5, 6, axis=1))]
    rows = row_axes([block for block in facts if block is not None])
    assert rows.sink == "B"
    assert rows.of == {"largest": (0, 1), "powers": (0, 2), "total": (0, 1), "B": (0, 2)}


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_a_residual_is_added_once_a_row(name: str) -> None:
    func = ops.from_spec(f"{name}:8,64,residual=true")
    (sketch,) = space_of(func, level(3)).sketches
    program = sites(sketch.trace.apply_to(func).func)
    readers = [site for site in program if any(r.buffer.name == "A" for r in site.block.reads)]
    assert [site.block.name for site in readers] == ["added"]
    assert readers[0].loops[0] in program[-1].loops


def test_a_block_of_its_own_axes_stays_outside() -> None:
    a, g = te.placeholder((6, 24), name="A"), te.placeholder((24,), name="G")
    scale = te.compute((24,), lambda j: te.exp(g[j]), name="scale")
    k = te.reduce_axis((0, 24), name="k")
    total = te.compute((6,), lambda i: te.sum(a[i, k] * scale[k], axis=k), name="total")
    # A product: dividing by a sum that may be near 0 would magnify its rounding.
    b = te.compute((6, 24), lambda i, j: a[i, j] * total[i], name="B")
    func = te.create_prim_func([a, g, b])
    check(func, 1, "rows")
    (sketch,) = space_of(func, level(3)).sketches
    first = sites(sketch.trace.apply_to(func).func)[0]
    assert first.block.name == "scale"
    assert len(first.loops) < 3


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm"])
def test_special_values_stay_in_their_rows(name: str) -> None:
    func = ops.from_spec(f"{name}:8,40")
    inputs = random_inputs(func, 0)
    a = inputs["A"]
    a[1, 7], a[2, 39], a[3, 0], a[4], a[5] = np.nan, np.inf, -np.inf, -np.inf, 0.0
    with np.errstate(all="ignore"):
        expected = interpret(func, inputs)["B"]
    space = space_of(func, here())
    for choices in space.draw(0, 4, np.random.default_rng(0)):
        out = computed(func, space.sketches[0].candidate(choices), here(), inputs)["B"]
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("func", "kinds"),
    [
        (ops.layer_norm(8, 64), ["vectorized", "unrolled"]),
        (ops.softmax(8, 64), ["serial", "vectorized"]),
    ],
    ids=["weights in common", "nothing in common"],
)
def test_rows_with_weights_in_common_run_side_by_side(func: PrimFunc, kinds: list[str]) -> None:
    (sketch,) = space_of(func, level(3)).sketches
    last = sites(sketch.trace.apply_to(func).func)[-1]
    assert [loop.kind for loop in last.loops[-2:]] == kinds


def test_products_of_both_axes_are_no_chain_of_rows() -> None:
    """Register tiles of a product read its operands less often than its rows do."""
    x, gate, up = (te.placeholder(shape) for shape in ((16, 24), (24, 32), (24, 32)))
    gated, scaled = tensors.matmul(x, gate), tensors.matmul(x, up)
    swiglu = te.compute((16, 32), lambda i, j: te.sigmoid(gated[i, j]) * gated[i, j] * scaled[i, j])
    space = space_of(te.create_prim_func([x, gate, up, swiglu]), level(3))
    assert space.sketches
    assert all(sketch.name != "columns" for sketch in space.sketches)


def ahead(space: SketchSpace) -> list[int]:
    return [n for n, sketch in enumerate(space.sketches) if sketch.name == "rows_ahead"]


@runs_here(3)
def test_rows_of_a_distant_cache_are_read_ahead() -> None:
    func = ops.layer_norm(97, 768, residual=True)
    space = design_space(Task(func, level(3)))
    assert ahead(space)
    check_candidates(func, space, ahead(space), each=2)


@pytest.mark.parametrize(
    ("func", "cores"),
    [
        (ops.layer_norm(24, 768, residual=True), 1),  # fits the second-level cache
        (ops.layer_norm(197, 768), 1),  # the first block reduces
        (ops.layer_norm(197, 768, residual=True), 4),  # pipelined loops are serial
    ],
)
def test_other_rows_are_not_read_ahead(func: PrimFunc, cores: int) -> None:
    assert not ahead(design_space(Task(func, level(3, cores))))
