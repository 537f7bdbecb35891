"""Vectorized loops: their lanes, their chunks, and the steps of long ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.backends.cpu.codegen.emitters.vectorization import Vectorization, chunks, strips
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Call, For, IntImm, Load, Store, Var, make_buffer
from compiler.ir.core.visit import substitute


def copy(extent: int, *, is_reduction: bool = False, dtype: DType = "float32") -> For:
    A, B, i = make_buffer("A", (extent,), dtype), make_buffer("B", (extent,), dtype), Var("i")
    index = IntImm(0) if is_reduction else i
    return For(i, IntImm(extent), Store(B, (index,), Load(A, (i,))), "vectorized")


@pytest.mark.parametrize("extent", [1, 2, 7, 8, 19, 45])
@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_chunks_cover_a_range_once_in_order(extent: int, lanes: int) -> None:
    covered = [c.offset + lane for c in chunks(extent, lanes) for lane in range(c.width)]
    assert covered == list(range(extent))


def test_the_rest_of_a_range_is_halved() -> None:
    assert [chunk.width for chunk in chunks(45, 8)] == [8, 8, 8, 8, 8, 4, 1]


@pytest.mark.parametrize(("dtype", "lanes"), [("float32", 8), ("float64", 4), ("int8", 32)])
def test_lanes_fill_a_register(dtype: DType, lanes: int) -> None:
    assert Vectorization(256, set()).num_lanes(copy(64, dtype=dtype)) == lanes


def test_a_store_to_one_element_has_no_lanes() -> None:
    assert Vectorization(256, set()).num_lanes(copy(64, is_reduction=True)) == 1


@pytest.mark.parametrize(("extent", "lanes"), [(64, 32), (300, 32), (33, 32)])
def test_strips_run_each_iteration_once(extent: int, lanes: int) -> None:
    indices = []
    for part in strips(copy(extent), extent, lanes):
        outer = [part] if part.kind == "vectorized" else _iterations(part)
        for vectors in outer:
            indices += [_stored_index(store) for store in _iterations(vectors)]
    assert indices == list(range(extent))


def _iterations(loop: object) -> list[object]:
    assert isinstance(loop, For)
    assert isinstance(loop.extent, IntImm)
    count = loop.extent.value
    return [substitute(loop.body, {loop.var: IntImm(value)}) for value in range(count)]


def _stored_index(stmt: object) -> int:
    assert isinstance(stmt, Store)
    index = simplify(stmt.indices[0], {})
    assert isinstance(index, IntImm)
    return index.value


@pytest.mark.parametrize(("name", "expected"), [("exp", True), ("sqrt", False)])
def test_polynomials_are_calls_of_functions_that_are_polynomials(name: str, expected: bool) -> None:
    loop = copy(8)
    store = loop.body
    assert isinstance(store, Store)
    loop = replace(loop, body=replace(store, value=Call(name, (store.value,), "float32")))
    assert Vectorization(256, set()).has_polynomials(loop) == expected
    assert not Vectorization(256, {store.buffer}).has_polynomials(loop)
