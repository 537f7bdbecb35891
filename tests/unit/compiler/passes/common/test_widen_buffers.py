"""Copies in a wider type: their type, and that everything around them computes the same."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.driver import lower
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Allocate
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def copied(dtype: DType, annotation: object) -> PrimFunc:
    """Return a product whose left operand is copied, and read in three types."""
    A = te.placeholder((6, 8), dtype, name="A")
    B = te.placeholder((8, 16), "int8", name="B")
    k = te.reduce_axis((0, 8), name="k")

    def term(i: te.Value, j: te.Value) -> te.Value:
        sign_changed = A[i, k].astype("uint8").astype("int32")
        return A[i, k].astype("int32") * B[k, j].astype("int32") + sign_changed

    C = te.compute((6, 16), lambda i, j: te.sum(term(i, j), axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    copy = sch.cache_read("C", 0, "global")
    sch.annotate(copy, "buffer_dtype", annotation)  # type: ignore[arg-type]
    return sch.func


def type_of_copy(func: PrimFunc) -> str:
    lowered = lower(func, level(3))
    buffers = [n.buffer for n in walk_stmts(lowered) if isinstance(n, Allocate)]
    return next(buffer.dtype for buffer in buffers if buffer.name == "A_global")


@pytest.mark.parametrize(
    ("dtype", "wide"), [("int8", "int16"), ("uint8", "int16"), ("int8", "int32")]
)
def test_a_copy_is_kept_in_a_wider_type(dtype: DType, wide: DType) -> None:
    func = copied(dtype, [0, wide])
    assert type_of_copy(func) == wide
    check_against_evaluation(func)


@pytest.mark.parametrize(
    "annotation",
    [[0, "int8"], [0, "uint16"], [0, "float32"], [0, "int128"], [1, "int16"], ["int16"], "int16"],
)
def test_types_that_do_not_hold_the_elements_are_ignored(annotation: object) -> None:
    func = copied("int8", annotation)
    assert type_of_copy(func) == "int8"
    check_against_evaluation(func)


def test_the_type_of_a_parameter_stays() -> None:
    A = te.placeholder((8,), "int8", name="A")
    B = te.compute((8,), lambda i: A[i], name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    sch.annotate("B", "buffer_dtype", [0, "int16"])
    check_against_evaluation(sch.func)
