"""Products that are packed, cached or written directly."""

from __future__ import annotations

import numpy as np

from compiler import ops
from compiler.ir.core.visit import walk
from tests.unit.tuner.space.spaces import names, space_of
from tuner.space.analysis.block_facts import sites

PACKED = ["packed", "packed_right", "packed_whole", "packed_right_whole"]


def test_a_product_is_packed_or_written_directly_or_cached() -> None:
    assert names(ops.matmul(32, 32, 2048)) == [*PACKED, "direct", "cached"]
    # Blocks of so short a sum are not worth it, and the whole sum is another sketch's.
    assert names(ops.matmul(32, 32, 32)) == [*PACKED[2:], "direct", "cached"]
    assert names(ops.matmul(32, 32, 4)) == ["direct", "cached"]


def test_an_elementwise_consumer_is_fused() -> None:
    assert names(ops.mm_relu(32, 32, 32)) == [*PACKED, "fused"]
    assert names(ops.matmul_bias_relu(32, 32, 32)) == [*PACKED, "fused"]


def test_the_vectorized_loop_is_contiguous_in_the_output() -> None:
    func = ops.conv2d(1, 4, 8, 8, 6, 3, 1, 1)
    space = space_of(func)
    for index, sketch in enumerate(space.sketches):
        choices = space.draw(index, 1, np.random.default_rng(0))[0]
        scheduled = sketch.candidate(choices).trace.apply_to(func).func
        (update,) = (s for s in sites(scheduled) if s.block.name.endswith("_update"))
        innermost = update.loops[-1]
        assert innermost.kind == "vectorized"
        assert innermost.var in set(walk(update.realize.iter_values[3]))
        assert innermost.var not in set(walk(update.realize.iter_values[1]))
