"""Copies in a wider type: their type, and that everything around them computes the same."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.driver import lower
from compiler.ir.core.dtypes import DType, is_float
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
    wide: DType = "float32" if is_float(dtype) else "int32"

    def term(i: te.Value, j: te.Value) -> te.Value:
        changed = A[i, k].astype("float16" if is_float(dtype) else "uint8").astype(wide)
        return A[i, k].astype(wide) * B[k, j].astype(wide) + changed

    C = te.compute((6, 16), lambda i, j: te.sum(term(i, j), axis=k), name="C")
    sch = Schedule(te.create_prim_func([A, B, C]))
    copy = sch.cache_read("C", 0, "global")
    sch.annotate(copy, "buffer_bits", annotation)  # type: ignore[arg-type]
    return sch.func


def type_of_copy(func: PrimFunc) -> str:
    lowered = lower(func, level(3))
    buffers = [n.buffer for n in walk_stmts(lowered) if isinstance(n, Allocate)]
    return next(buffer.dtype for buffer in buffers if buffer.name == "A_global")


@pytest.mark.parametrize(
    ("dtype", "size", "wide"),
    [
        ("int8", 16, "int16"),
        ("uint8", 16, "int16"),
        ("int8", 32, "int32"),
        ("bfloat16", 32, "float32"),
        ("float16", 64, "float64"),
        ("float8_e4m3fn", 32, "float32"),
    ],
)
def test_a_copy_is_kept_in_a_wider_type(dtype: DType, size: int, wide: DType) -> None:
    func = copied(dtype, [0, size])
    assert type_of_copy(func) == wide
    check_against_evaluation(func)


@pytest.mark.parametrize(
    ("dtype", "annotation"),
    [
        ("int8", [0, 8]),
        ("uint8", [0, 8]),
        ("int8", [0, 128]),
        ("int8", [1, 16]),
        ("int8", [16]),
        ("int8", 16),
        ("bfloat16", [0, 16]),
        ("float8_e5m2", [0, 16]),
        ("float16", [0, 8]),
    ],
)
def test_types_that_do_not_hold_the_elements_are_ignored(dtype: DType, annotation: object) -> None:
    func = copied(dtype, annotation)
    assert type_of_copy(func) == dtype
    check_against_evaluation(func)


def test_the_type_of_a_parameter_stays() -> None:
    A = te.placeholder((8,), "int8", name="A")
    B = te.compute((8,), lambda i: A[i], name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    sch.annotate("B", "buffer_bits", [0, 16])
    check_against_evaluation(sch.func)
