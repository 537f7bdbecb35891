"""`unsafe_set_dtype`: values are rounded to the new type, of views too."""

from __future__ import annotations

import numpy as np

from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import becomes, elementwise, refused, scheduled

VIEWED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(B[vi])
            view = T.match_buffer(B[vi], (1,))
            view[0] = A[vi]
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
"""


def test_values_are_rounded_to_the_new_type() -> None:
    sch = scheduled(VIEWED)
    sch.unsafe_set_dtype("B", 0, "float16")
    values = np.linspace(-1, 1, 8, dtype="float32")
    result = evaluate(sch.func, {"A": values, "C": np.zeros(8, "float32")})["C"]
    np.testing.assert_array_equal(result, values.astype("float16").astype("float32"))
    assert not np.array_equal(result, values)


def test_a_wider_type_changes_nothing() -> None:
    sch = scheduled(VIEWED)
    sch.unsafe_set_dtype("B", 0, "float64")
    becomes(sch, sch.func.script())
    values = np.linspace(-1, 1, 8, dtype="float32")
    result = evaluate(sch.func, {"A": values, "C": np.zeros(8, "float32")})["C"]
    np.testing.assert_array_equal(result, values)


def test_parameters_keep_their_types() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "C is a parameter: callers pass it as float32", at='"C"'):
        sch.unsafe_set_dtype("C", 0, "float16")
    with refused(sch, "unknown type 'float15'", at="def "):
        sch.unsafe_set_dtype("B", 0, "float15")
