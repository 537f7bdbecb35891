"""Tiles that are copied across: whole rows are read and whole columns written, by shuffles."""

from __future__ import annotations

import re

import pytest

from compiler import te
from compiler.backends.cpu.codegen.machine_code import disassemble
from compiler.driver import emit
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation

V3 = level(3)


def transposed(rows: int, columns: int, dtype: DType = "float32", tile: int = 8) -> PrimFunc:
    """Return `B[j, i] = A[i, j] + A[i, j]` in tiles of `tile` unrolled rows, vectors along j."""
    A = te.placeholder((rows, columns), dtype, name="A")
    B = te.compute((columns, rows), lambda j, i: A[i, j] + A[i, j], name="B")
    sch = Schedule(te.create_prim_func([A, B]))
    j, i = sch.get_loops("B")
    outer, inner = sch.split(i, [None, tile])
    sch.reorder(outer, inner, j)
    sch.unroll(inner)
    sch.vectorize(j)
    return sch.func


def assembly(func: PrimFunc) -> str:
    return disassemble(emit(func, V3).text, V3)


@pytest.mark.parametrize("tile", [1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 19])
@pytest.mark.parametrize("columns", [2, 7, 8, 23, 43])
def test_a_tile_of_any_shape_is_transposed(tile: int, columns: int) -> None:
    check_against_evaluation(transposed(2 * tile, columns, tile=tile))


@pytest.mark.parametrize("dtype", ["float64", "int8", "int16", "int64", "float16", "bool"])
def test_a_tile_of_any_type_is_transposed(dtype: DType) -> None:
    if dtype == "bool":
        A = te.placeholder((8, 16), dtype, name="A")
        B = te.compute((16, 8), lambda j, i: A[i, j], name="B")
        sch = Schedule(te.create_prim_func([A, B]))
        j, i = sch.get_loops("B")
        sch.reorder(i, j)
        sch.unroll(i)
        sch.vectorize(j)
        check_against_evaluation(sch.func)
        return
    check_against_evaluation(transposed(32, 40, dtype, tile=16))


def test_no_lane_is_stored_alone() -> None:
    text = assembly(transposed(8, 8))
    stores = re.findall(r"^\s*v(?:mov|extract)\S*\s+(?:\$\d, )?%\S+, \S*\(%r", text, re.MULTILINE)
    assert len(stores) == 8
    assert "vmovss" not in "".join(stores)


def test_no_half_is_stored_alone() -> None:
    assert "vpextrw" not in assembly(transposed(8, 8, "float16"))


@pytest.mark.parametrize("tile", [3, 5, 6, 7, 9, 12, 14])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32"])
def test_rows_that_are_no_power_of_two_are_two_overlapping_parts(dtype: DType, tile: int) -> None:
    func = transposed(2 * tile, 16, dtype, tile=tile)
    check_against_evaluation(func)
    text = emit(func, V3).text
    stored = set(map(int, re.findall(r"store <(\d+) x", text)))
    assert stored
    assert stored <= {2, 4, 8}


def test_seven_bytes_are_stored_as_two_parts_of_four() -> None:
    text = assembly(transposed(7, 16, "int8", tile=7))
    assert not re.search(r"vpextr[bw]|vpinsr", text)
    assert len(re.findall(r"v(?:movd|movss|pextrd|extractps)\b.*, \S*\(%r", text)) == 2 * 16


def test_a_tile_that_is_copied_within_a_buffer_is_stored_row_by_row() -> None:
    """What an earlier row stored, a later one may load."""
    func = parse(
        """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 16), "float32")):
    for i in T.unroll(8):
        for j in T.vectorized(8):
            with T.sblock("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(A[vj, vi + 8])
                A[vj, vi + 8] = A[vi, vj]
"""
    )
    assert "shufflevector" not in emit(func, V3).text
    check_against_evaluation(func)
