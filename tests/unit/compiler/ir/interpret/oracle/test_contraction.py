"""Contractions as products of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import ops, te
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle import lanes, nest, oracle, oracle_run
from compiler.ir.interpret.oracle.oracle import compare, interpret
from tests.unit.compiler.ir.interpret.oracle.contractions import SPECS, compute
from tests.unit.compiler.ir.interpret.oracle.oracle_strategies import way as way

Array = NDArray[Any]


@pytest.mark.parametrize("spec", SPECS)
def test_contractions_agree_with_the_general_way(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    func = ops.from_spec(spec)
    inputs = random_inputs(func, seed=1)
    fast = interpret(func, inputs)
    monkeypatch.setattr(oracle_run, "stepped", lambda *_: None)
    reduced = interpret(func, inputs)
    monkeypatch.setattr(nest, "_reduction", lambda *_: None)
    stepped = interpret(func, inputs)
    monkeypatch.setattr(nest, "_nest", lambda *_: None)
    across = interpret(func, inputs)
    monkeypatch.setattr(lanes.Touched, "is_lane", lambda *_: False)
    in_order = interpret(func, inputs)
    for name, array in fast.items():
        for other in (reduced, stepped, across, in_order):
            np.testing.assert_allclose(array, other[name], rtol=1e-6, atol=1e-7)


def test_small_chunks_give_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    for spec in SPECS:
        func = ops.from_spec(spec)
        inputs = random_inputs(func, seed=1)
        whole = interpret(func, inputs)
        monkeypatch.setattr(oracle, "_CHUNK", 7)
        parts = interpret(func, inputs)
        monkeypatch.undo()
        assert compare(func, parts, whole) < 1e-6


def test_sums_are_added_up_in_float64() -> None:
    n = 1 << 17
    func = ops.row_sum(1, n)
    rows = np.full((1, n), 0.1, np.float32)
    assert interpret(func, {"A": rows})["B"][0] == np.float32(np.float64(np.float32(0.1)) * n)


def test_indices_that_are_no_grid_are_gathered() -> None:
    a = te.placeholder((6, 6), "float32", name="A")
    k = te.reduce_axis((0, 6), name="k")
    array = np.arange(36, dtype=np.float32).reshape(6, 6)
    cases: list[tuple[PrimFunc, Array]] = [
        (compute((6,), lambda i: a[i, i], a), array.diagonal()),
        (compute((6,), lambda i: a[5 - i, i // 2], a), array[5 - np.arange(6), np.arange(6) // 2]),
        (compute((12,), lambda i: a[i % 6, 2], a), np.tile(array[:, 2], 2)),
        (compute((3,), lambda i: a[i * 2, 1 + i], a), array[[0, 2, 4], [1, 2, 3]]),
        (compute((1,), lambda _: te.sum(a[k, k], axis=k), a), array.trace()[None]),
        (
            compute((6,), lambda i: te.if_then_else(i < 1, 0, a[i - 1, 0]), a),
            np.concatenate([[0], array[:5, 0]]),
        ),
    ]
    for func, expected in cases:
        np.testing.assert_array_equal(interpret(func, {"A": array})["out"], expected)


def test_sums_of_narrow_integers_are_exact() -> None:
    a, b = te.placeholder((3, 64), "int8", name="A"), te.placeholder((64, 5), "int8", name="B")
    k = te.reduce_axis((0, 64), name="k")
    wide = compute(
        (3, 5),
        lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k),
        a,
        b,
    )
    rng = np.random.default_rng(0)
    given = {
        n: rng.integers(-128, 128, s).astype(np.int8) for n, s in (("A", (3, 64)), ("B", (64, 5)))
    }
    expected = given["A"].astype(np.int32) @ given["B"].astype(np.int32)
    np.testing.assert_array_equal(interpret(wide, given)["out"], expected)
