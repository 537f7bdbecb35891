"""Spatial blocks and small reductions, an element or a vector a thread."""

from __future__ import annotations

import pytest

from compiler import ops
from tests.unit.tuner.space.gpu_spaces import assert_computes, draw, names, space_of
from tuner.space.rules.cuda.flat_blocks import THREADS

PROGRAMS = ("relu:33,77", "add:64,40", "concat:12,40,9", "pad:5,9,2", "cast:7,64", "gelu:2,3,31")


@pytest.mark.parametrize("spec", PROGRAMS)
def test_random_schedules_compute_the_program(spec: str) -> None:
    func = ops.from_spec(spec)
    assert names(func) == ["flat"]
    assert_computes(func, draw(func, "flat", 2))


def test_vectors_divide_rows_and_hold_at_most_sixteen_bytes() -> None:
    def lengths(spec: str) -> set[int]:
        (sketch,) = space_of(ops.from_spec(spec)).sketches
        return set(sketch.knobs[0].options[:, 0].tolist())

    assert lengths("relu:640,48") == {1, 2, 4}
    assert lengths("relu:640,48:float16") == {1, 2, 4, 8}
    assert lengths("relu:640,50") == {1, 2}
    assert lengths("relu:640,49") == {1}


def test_few_elements_need_few_threads() -> None:
    space = space_of(ops.from_spec("relu:40"))
    (sketch,) = space.sketches
    assert {sketch.values(row[None])[0, -1] for row in space.enumerate(0)} == {min(THREADS)}
