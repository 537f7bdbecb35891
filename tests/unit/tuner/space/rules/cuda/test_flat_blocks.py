"""Spatial blocks and small reductions, an element or a vector a thread."""

from __future__ import annotations

import pytest

from compiler import ops, te
from compiler.ir.core.program import PrimFunc
from tests.unit.tuner.space.gpu_spaces import assert_computes, draw, emulate, first, names, space_of
from tuner.space.rules.cuda.flat_blocks import THREADS

PROGRAMS = ("relu:33,77", "add:64,40", "concat:12,40,9", "pad:5,9,2", "cast:7,64", "gelu:2,3,31")


@pytest.mark.parametrize("spec", PROGRAMS)
def test_random_schedules_compute_the_program(spec: str) -> None:
    func = ops.from_spec(spec)
    assert names(func) == ["flat"]
    assert_computes(func, draw(func, "flat", 2))


def biased(columns: int) -> PrimFunc:
    """Return a sum of a matrix and a row, which lies elsewhere for each row of the matrix."""
    a, b = te.placeholder((640, columns), name="A"), te.placeholder((columns,), name="b")
    c = te.compute((640, columns), lambda i, j: a[i, j] + b[j], name="C")
    return te.create_prim_func([a, b, c])


def test_vectors_hold_at_most_sixteen_bytes_and_divide_rows_that_are_not_in_order() -> None:
    def lengths(func: PrimFunc) -> set[int]:
        (sketch,) = space_of(func).sketches
        return set(sketch.knobs[0].options[:, 0].tolist())

    assert lengths(ops.relu(640, 49)) == {1, 2, 4}
    assert lengths(ops.relu(640, 49, dtype="float16")) == {1, 2, 4, 8}
    assert lengths(biased(48)) == {1, 2, 4}
    assert lengths(biased(50)) == {1, 2}
    assert lengths(biased(49)) == {1}


@pytest.mark.parametrize("spec", ["relu:1003", "add:33,77"])
def test_vectors_cross_rows_that_lie_one_after_the_other(spec: str) -> None:
    func = ops.from_spec(spec)
    (report,) = emulate(func, first(func, "flat"))
    accesses = [a for a in report.accesses if a.memory == "global"]
    vectors = [a for a in accesses if ".v4." in a.instruction]
    assert sum(a.ideal for a in vectors) > 0.95 * sum(a.ideal for a in accesses)
    # The elements of the last vector, which is not whole, are single ones.
    assert report.global_bytes <= report.bytes_read + report.bytes_written + 3 * 3 * 32


def test_few_elements_need_few_threads() -> None:
    space = space_of(ops.from_spec("relu:40"))
    (sketch,) = space.sketches
    assert {sketch.values(row[None])[0, -1] for row in space.enumerate(0)} == {min(THREADS)}
