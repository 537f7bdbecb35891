"""Products by tiles of blocks and threads."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.nodes import BlockRealize
from compiler.ir.core.visit import walk
from tests.unit.tuner.space.gpu_spaces import assert_computes, draw, names, space_of


@pytest.mark.parametrize(
    ("spec", "sketches"),
    [
        ("matmul:24,16,16", ["wide_tiles", "tiles"]),
        ("matmul:37,41,13", ["tiles"]),
        ("dense:13,24,19", ["wide_tiles", "tiles"]),
        ("batch_matmul:2,17,12,20", ["tiles"]),
        ("matmul_bias_relu:20,24,16", ["wide_tiles", "tiles"]),
        ("conv2d:1,4,9,9,8,3,1,1", ["tiles"]),
        ("conv2d:1,3,11,11,8,3,2,1", ["tiles"]),
    ],
)
def test_random_schedules_compute_the_program(spec: str, sketches: list[str]) -> None:
    func = ops.from_spec(spec)
    assert names(func) == sketches
    assert_computes(func, draw(func, sketches[0], 1))


def test_a_product_of_a_vector_is_no_tile() -> None:
    assert names(ops.from_spec("dense:1,40,64")) == ["cross_thread"]


def test_padding_and_epilogue_need_no_memory_of_their_own() -> None:
    func = ops.from_spec("conv2d:1,4,9,9,8,3,1,1,activation=relu")
    (schedule,) = draw(func, "tiles", 1)
    blocks = {n.block.name for n in walk(schedule.func.body) if isinstance(n, BlockRealize)}
    assert "pad_temp" not in blocks
    outputs = {p.name for p in func.buffers}
    scopes = {
        buffer.scope
        for node in walk(schedule.func.body)
        if isinstance(node, BlockRealize)
        for buffer in node.block.alloc_buffers
        if buffer.name not in outputs
    }
    assert scopes == {"local", "shared"}


def test_vectors_of_copies_divide_the_rows_of_their_source() -> None:
    (sketch,) = space_of(ops.from_spec("matmul:40,42,24")).sketches
    # Rows of the larger operand, the right one, have 42 elements, those of the left one 24.
    assert [knob.options[:, 0].tolist() for knob in sketch.knobs[-2:]] == [[2, 1], [4, 2, 1]]
