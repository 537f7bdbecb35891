"""Products that are packed, cached or written directly."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.visit import walk
from tests.targets import here
from tests.unit.tuner.candidates import check_candidates
from tests.unit.tuner.space.spaces import names, space_of
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.task import Task

PACKED = ["packed", "packed_right", "packed_whole", "packed_right_whole"]


def test_a_product_is_packed_or_written_directly_or_cached() -> None:
    assert names(ops.matmul(32, 32, 2048)) == [*PACKED, "direct", "cached"]
    # Blocks of so short a sum are not worth it, and the whole sum is another sketch's.
    assert names(ops.matmul(32, 32, 32)) == [*PACKED[2:], "direct", "cached"]
    assert names(ops.matmul(32, 32, 4)) == ["direct", "cached"]


def test_an_elementwise_consumer_is_fused() -> None:
    assert names(ops.mm_relu(32, 32, 32)) == [*PACKED, "fused"]
    assert names(ops.matmul_bias_relu(32, 32, 32)) == [*PACKED, "fused"]


@pytest.mark.parametrize(
    "spec", ["mean:1", "mean:5", "mean:7", "layer_norm:1", "layer_norm:6", "sum:3:bfloat16"]
)
@pytest.mark.parametrize("num_cores", [1, 2])
def test_an_epilogue_of_a_single_element_is_a_block_of_its_own(spec: str, num_cores: int) -> None:
    """The element has no loop below which its consumer could run."""
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    check_candidates(func, space, each=2)


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
