"""Chains of products with a softmax are computed in blocks of keys; masked blocks are skipped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compiler import ops
from compiler.driver import lower
from compiler.ir.core.nodes import Allocate, IntImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.target.cpu import CpuTarget
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates, computed
from tests.unit.tuner.space.spaces import names
from tuner.space.generate import design_space
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

HALF = CpuTarget.of(here()).vector_bits // 64
CHAINS = {
    "causal": ops.attention(1, 2, 24, 64, 16, causal=True),
    "a prime number of rows": ops.attention(1, 2, 37, 96, 12),
    "half vectors": ops.attention(2, 1, 16, 45 * max(HALF, 4), 8),
    "a group": ops.grouped_query_attention(1, 4, 2, 16, 64, 16, causal=True, past=48),
    "a mask of narrow floats": ops.grouped_query_attention(
        2, 2, 1, 24, 128, 16, dtype="bfloat16", mask=True
    ),
}


def online(func: PrimFunc) -> Sketch:
    """Return the sketch."""
    space = design_space(Task(func, level(3)))
    return next(sketch for sketch in space.sketches if sketch.name == "online")


@pytest.mark.parametrize("name", CHAINS)
def test_chains_in_blocks_of_keys_are_correct(name: str) -> None:
    func, num_cores = CHAINS[name], 2 if name == "a group" else 1
    space = design_space(Task(func, here(num_cores)))
    number = [sketch.name for sketch in space.sketches].index("online")
    check_candidates(func, space, [number], each=1)


def test_keys_beyond_the_length_of_a_row_may_be_nan() -> None:
    """Of values this is not so: their weight is 0, and its product with NaN is NaN."""
    func = ops.grouped_query_attention(4, 2, 1, 24, 96, 8, lengths=True)
    space = design_space(Task(func, here()))
    inputs = random_inputs(func, 0) | {"lengths": np.array([96, 33, 32, 0], np.int32)}
    expected = interpret(func, inputs)
    for row, length in enumerate([96, 33, 32, 1]):
        inputs["K"][row, :, length:] = np.nan
    for number, sketch in enumerate(space.sketches):
        candidate = sketch.candidate(space.draw(number, 1, np.random.default_rng(0))[0])
        arrays = computed(func, candidate, space.target, inputs)
        compare(func, {"out": arrays["out"]}, expected)


def test_blocks_beyond_the_length_of_a_row_are_skipped() -> None:
    func = ops.grouped_query_attention(4, 2, 1, 24, 96, 8, lengths=True)
    space = design_space(Task(func, here()))
    number = [sketch.name for sketch in space.sketches].index("online")
    inputs = random_inputs(func, 0) | {"lengths": np.array([96, 33, 32, 0], np.int32)}
    candidate = space.sketches[number].candidate(space.draw(number, 1, np.random.default_rng(0))[0])
    assert "skip_masked" in str(candidate.trace)
    arrays = computed(func, candidate, space.target, inputs)
    reference = ops.reference("grouped_query_attention:4,2,1,24,96,8,lengths=true")
    expected = reference(*inputs.values())
    np.testing.assert_allclose(arrays["out"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_causal", [True, False])
def test_blocks_that_a_mask_excludes_are_skipped(is_causal: bool) -> None:
    trace = online(ops.attention(1, 2, 64, 128, 16, causal=is_causal)).trace
    assert ("skip_masked" in str(trace)) is is_causal


def test_scores_of_one_block_of_keys_are_stored() -> None:
    func = ops.attention(1, 1, 256, 4096, 16)
    space = design_space(Task(func, level(3)))
    choices = space.draw(0, 1, np.random.default_rng(0))[0]
    program = lower(online(func).candidate(choices).trace.apply_to(func).func, level(3))
    shapes = {n.buffer.name: n.buffer.shape for n in walk_stmts(program) if isinstance(n, Allocate)}
    sizes = [extent.value for extent in shapes["scores"] if isinstance(extent, IntImm)]
    assert math.prod(sizes) <= 256 * 256


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("attention:1,2,16,64,32", ["online", "products"]),
        ("attention:1,2,16,61,32", ["products"]),
        ("attention:1,2,16,32,32", ["products"]),
        ("attention:1,2,15,64,32", ["products"]),
    ],
)
def test_many_rows_share_blocks_that_divide_the_keys(spec: str, expected: list[str]) -> None:
    assert names(ops.from_spec(spec)) == expected
