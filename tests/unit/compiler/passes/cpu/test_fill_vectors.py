"""Short rows of small buffers are computed in whole vectors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import te
from compiler.driver import lower
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import For, IntImm, Store
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.schedule import Schedule
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation


def in_rows(
    columns: int, body: Any, dtype: DType = "float32", *, tile: int = 0, is_copied: bool = True
) -> PrimFunc:
    """Return `out[i, j] = B[i, j] + 1` with `B[i, j] = body(A, i, j)`, row by row.

    Args:
        tile: The elements of a part of a row; 0 for whole rows.
        is_copied: Whether rows of `A`, which are three elements longer, are copied first.
    """
    A = te.placeholder((5, columns + 3), dtype, name="A")
    B = te.compute((5, columns), lambda i, j: body(A, i, j), name="B")
    out = te.compute((5, columns), lambda i, j: B[i, j] + 1, name="out")
    sch = Schedule(te.create_prim_func([A, out]))
    producer, sink = sch.get_block("B"), sch.get_block("out")
    row, column = sch.get_loops(sink)
    sch.compute_at(producer, row)
    if is_copied:
        sch.compute_at(sch.cache_read(producer, 0, "global"), row)
    if tile:
        column = sch.split(sch.get_loops(producer)[-1], [None, tile])[1]
        sch.vectorize(column)
    else:
        sch.vectorize(sch.get_loops(producer)[-1])
    sch.vectorize(sch.get_loops(sink)[-1])
    return sch.func


def sums_of_windows(
    rows: int, columns: int, window: int, dtype: DType, *, is_large: bool
) -> PrimFunc:
    """Return sums of neighbours in the rows of an array `P`, row by row.

    Args:
        is_large: Whether `P` is computed as a whole before, not with each row.
    """
    A = te.placeholder((rows, columns + window - 1), dtype, name="A")
    P = te.compute((rows, columns + window - 1), lambda i, j: A[i, j] + 1, name="P")
    r = te.reduce_axis((0, window), name="r")
    B = te.compute((rows, columns), lambda i, j: te.sum(P[i, j + r], axis=r), name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    block = sch.get_block("B")
    local = sch.cache_write(block, 0, "local")
    i, j, step = sch.get_loops(block)
    sch.reorder(i, step, j)
    sch.reverse_compute_at(local, i)
    if not is_large:
        sch.compute_at(sch.get_block("P"), i)
    sch.unroll(step)
    for loop in (j, sch.get_loops(local)[-1]):
        sch.vectorize(loop)
    sch.decompose_reduction(sch.get_block("B"), step)
    return sch.func


def lanes(func: PrimFunc, name: str, version: int = 4) -> list[int]:
    """Return the extents of the vectorized loops over stores to a buffer."""
    return [
        loop.extent.value
        for loop in walk_stmts(lower(func, level(version)))
        if isinstance(loop, For) and loop.kind == "vectorized" and isinstance(loop.extent, IntImm)
        if any(isinstance(n, Store) and n.buffer.name == name for n in walk_stmts(loop.body))
    ]


def neighbours(A: Any, i: Any, j: Any) -> Any:
    return A[i, j] * 2 + A[i, j + 3]


@pytest.mark.parametrize(
    ("columns", "version", "expected"),
    [(14, 4, 16), (7, 4, 8), (28, 4, 32), (3, 3, 4), (14, 3, 16), (12, 3, 12), (18, 4, 18)],
)
def test_rows_that_end_in_parts_of_a_vector_become_longer(
    columns: int, version: int, expected: int
) -> None:
    func = in_rows(columns, neighbours)
    assert lanes(func, "B", version) == [expected]
    assert lanes(func, "out", version) == [columns]
    check_against_evaluation(func)


def test_the_width_of_the_widest_type_counts() -> None:
    func = in_rows(14, lambda A, i, j: A[i, j].astype("float64") * 2)
    assert lanes(func, "B") == [16]
    check_against_evaluation(func)


def test_a_parameter_is_read_where_it_has_elements() -> None:
    func = in_rows(14, neighbours, is_copied=False)
    assert lanes(func, "B") == [14]
    check_against_evaluation(func)


def test_a_part_of_a_row_does_not_overwrite_the_next_part() -> None:
    func = in_rows(14, neighbours, tile=7)
    assert lanes(func, "B") == [7]
    check_against_evaluation(func)


def test_an_index_that_grows_in_another_way_stays_inside() -> None:
    func = in_rows(14, lambda A, i, j: A[i, j + j // 7])
    assert lanes(func, "B") == [14]
    check_against_evaluation(func)


def test_elements_that_hold_anything_are_no_divisors() -> None:
    func = in_rows(14, lambda A, i, j: A[i, j] // (A[i, j] * A[i, j] + 1), "int32")
    assert lanes(func, "B") == [14]
    check_against_evaluation(func)


def test_large_buffers_keep_their_rows() -> None:
    A = te.placeholder((1000, 14), "float32", name="A")
    B = te.compute((1000, 14), lambda i, j: A[i, j] * 2, name="B")
    C = te.compute((1000, 14), lambda i, j: B[i, j] * 2, name="C")
    out = te.compute((1000, 14), lambda i, j: C[i, j] + 1, name="out")
    sch = Schedule(te.create_prim_func([A, out]))
    for name in ("B", "C", "out"):
        sch.vectorize(sch.get_loops(sch.get_block(name))[-1])
    assert lanes(sch.func, "C") == [14]
    check_against_evaluation(sch.func)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(2, 9),
    columns=st.integers(2, 40),
    window=st.integers(1, 5),
    dtype=st.sampled_from(["float32", "float64", "int32", "int8"]),
)
def test_windows_over_rows_of_any_length(
    rows: int, columns: int, window: int, dtype: DType
) -> None:
    check_against_evaluation(sums_of_windows(rows, columns, window, dtype, is_large=False))


@pytest.mark.parametrize(
    ("columns", "images", "expected"),
    [(14, 9, 16), (14, 1000, 16), (28, 1000, 32), (5, 3000, 5)],  # rows of 6 would be 9 elements
)
def test_small_rows_of_sums_may_read_the_rows_of_a_large_buffer(
    columns: int, images: int, expected: int
) -> None:
    func = sums_of_windows(images, columns, 2, "float32", is_large=True)
    assert min(lanes(func, "B_local")) == expected
    check_against_evaluation(func)
