"""Programs that may write a result over an operand, and programs that may not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import verify
from compiler.schedule.legality.overwriting import overwriting
from compiler.schedule.schedule import Schedule
from tests.property.generators.schedules import RandomTrace, reverse_concurrent_loops
from tests.unit.compiler.schedule.legality.positions import program

_SQUARE = 'A: T.Buffer((12, 12), "float32"), B: T.Buffer((12,), "float32")'
_PARAMS = f'{_SQUARE}, C: T.Buffer((12, 12), "float32")'


def _elementwise(store: str, *, prefix: str = "", params: str = _PARAMS) -> PrimFunc:
    text = f"""
for i, j in T.grid(12, 12):
    with T.sblock("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        {store}
"""
    return program(prefix + text, params)


_ADD = _elementwise("C[vi, vj] = T.max(A[vi, vj] + B[vj], A[vi, vj] * T.float32(2))")


def _same_results(func: PrimFunc, other: PrimFunc) -> None:
    """Compare a program with one that reads A from the memory of C."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(12).astype(np.float32) for name in "B"}
    square = rng.standard_normal((12, 12)).astype(np.float32)
    expected = evaluate(func, {**arrays, "A": square})["C"]
    for order in (other, reverse_concurrent_loops(other)):
        np.testing.assert_array_equal(evaluate(order, {**arrays, "C": square})["C"], expected)


def test_a_program_reads_each_element_from_where_it_writes_it() -> None:
    merged = overwriting(_ADD, "A", "C")
    assert merged is not None
    assert [buffer.name for buffer in merged.buffers] == ["B", "C"]
    verify(merged)
    _same_results(_ADD, merged)


def test_dimensions_of_one_element_may_have_any_index() -> None:
    shape = 'T.Buffer((1, 12), "float32")'
    text = """
for i, j in T.grid(1, 12):
    with T.sblock("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[0, vj] + T.float32(1)
"""
    assert overwriting(program(text, f"A: {shape}, C: {shape}"), "A", "C") is not None


_TILE = """
for i, j_0, j_1 in T.grid(12, 2, 8):
    with T.sblock("C"):
        vi = T.axis.spatial(12, i)
        vj = T.axis.spatial(12, T.min(j_0 * 8, 4) + j_1)
        C[vi, vj] = A[vi, vj] + B[vj]
"""
_HALVES = """
for i, j in T.grid(12, 6):
    with T.sblock("left"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, vj] + B[vj]
for i, j in T.grid(12, 6):
    with T.sblock("right"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj + 6] = A[vi, vj + 6] + B[vj]
"""
_ROWS = """
for i, j, k in T.grid(12, 12, 12):
    with T.sblock("C"):
        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
        with T.init():
            C[vi, vj] = T.float32(0)
        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk]
"""
_TWICE = """
D = T.alloc_buffer((12, 12), "float32")
for i, j in T.grid(12, 12):
    with T.sblock("D"):
        vi, vj = T.axis.remap("SS", [i, j])
        D[vi, vj] = A[vj, vi]
"""
_VIEW = """
for i in range(12):
    with T.sblock("C"):
        vi = T.axis.spatial(12, i)
        T.reads(A[vi, 0:12], B[0:12])
        T.writes(C[vi, 0:12])
        row = T.match_buffer(A[vi, 0:12], (12,), "float32")
        for j in range(12):
            C[vi, j] = row[11 - j] + B[j]
"""
_REPEATED = """
for r, i, j in T.grid(2, 12, 12):
    with T.sblock("C"):
        vi, vj = T.axis.remap("SS", [i, j])
        C[vi, vj] = A[vi, vj] + B[vj]
"""


@pytest.mark.parametrize(
    "func",
    [
        pytest.param(_elementwise("C[vi, vj] = A[vj, vi] + B[vj]"), id="transposed"),
        pytest.param(_elementwise("C[vi, vj] = A[vi, 11 - vj] + B[vj]"), id="reversed"),
        pytest.param(_elementwise("C[vi, vj] = A[vi, vj] + A[vi, 0] + B[vj]"), id="element of row"),
        pytest.param(
            _elementwise("C[vi, vj] = A[vi, vj] + D[vi, vj] + B[vj]", prefix=_TWICE),
            id="read by another block",
        ),
        pytest.param(program(_TILE, _PARAMS), id="overlapping tiles"),
        pytest.param(program(_HALVES, _PARAMS), id="two statements"),
        pytest.param(program(_ROWS, _PARAMS), id="reduction"),
        pytest.param(program(_VIEW, _PARAMS), id="through a view"),
        pytest.param(program(_REPEATED, _PARAMS), id="computed again"),
        pytest.param(
            _elementwise(
                "C[vi, vj] = T.float32(A[vi, vj]) + B[vj]",
                params=_PARAMS.replace("float32", "int32", 1),
            ),
            id="another type of the same size",
        ),
        pytest.param(
            _elementwise(
                "C[vi, vj] = A[vj] + B[vj]", params=_PARAMS.replace("(12, 12)", "(12,)", 1)
            ),
            id="broadcast",
        ),
    ],
)  # fmt: skip
def test_what_could_read_an_overwritten_element_is_refused(func: PrimFunc) -> None:
    assert overwriting(func, "A", "C") is None


def test_of_two_results_one_may_be_over_an_operand_that_the_other_does_not_read() -> None:
    params = _PARAMS + ', D: T.Buffer((12, 12), "float32")'
    for operand, is_proved in (("B[vj]", True), ("A[vi, vj]", False)):
        other = _TWICE.replace('D = T.alloc_buffer((12, 12), "float32")', "")
        first = other.replace("A[vj, vi]", operand)
        func = _elementwise("C[vi, vj] = A[vi, vj] + B[vj]", prefix=first, params=params)
        assert (overwriting(func, "A", "C") is not None) == is_proved
        assert overwriting(func, "A", "D") is None


def test_a_constant_is_not_overwritten() -> None:
    assert overwriting(_ADD.with_attr("layout_free_buffers", (0,)), "A", "C") is None
    merged = overwriting(_ADD.with_attr("layout_free_buffers", (1,)), "A", "C")
    assert merged is not None
    assert dict(merged.attrs)["layout_free_buffers"] == (0,)


def test_copies_of_the_operand_and_of_the_result_are_refused() -> None:
    for cache in ("cache_read", "cache_write"):
        schedule = Schedule(_ADD)
        getattr(schedule, cache)(schedule.get_block("C"), 0, "global")
        assert overwriting(schedule.func, "A", "C") is None


def test_under_any_schedule_the_results_stay_or_it_is_refused() -> None:
    rng = np.random.default_rng(3)

    def choose(options: Sequence[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    num_changed = 0
    for seed in range(40):
        steps = RandomTrace(Schedule(_ADD, seed=seed), choose)
        for _ in range(5):
            steps.step()
        merged = overwriting(steps.schedule.func, "A", "C")
        if merged is not None:
            num_changed += steps.schedule.func is not _ADD
            _same_results(_ADD, merged)
    assert num_changed >= 8  # the others have copies, or indices that prove nothing
