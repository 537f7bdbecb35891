"""Spaces that are derived from programs, once."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.tuner.space.spaces import space_of
from tuner.space.design_space import Point
from tuner.space.generate import MAX_SKETCHES, design_space
from tuner.task import Task

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


def test_empty_drafts_do_not_use_up_the_limit_of_sketches() -> None:
    """Two small products have more packed drafts than the limit, and the first are all empty."""
    assert len(space_of(ops.gru_cell(32, 128, 128)).sketches) == MAX_SKETCHES
