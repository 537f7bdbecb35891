"""Tiles and choices that a schedule draws, and decisions that are made to fit."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.analysis.structural import structural_equal
from compiler.schedule.error import TraceError
from compiler.schedule.primitives.sampling.sample import divisors, fitted, sample_partitioned
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.primitives.sampling.draws import (
    UNIFORM,
    equally_often,
    location,
    survives,
)
from tests.unit.compiler.schedule.schedule_asserts import (
    SYMBOLIC,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


def values(sch: Schedule, handles: Sequence[Any]) -> list[int | None]:
    """Return what handles stand for."""
    return [None if handle is None else sch.get(handle) for handle in handles]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("decision", "fit"),
    [
        ([4, 4], [4, 4]),
        ([2, 4], [4, 4]),
        ([0, 2], [8, 2]),
        ([-1, 1], [16, 1]),
        ([3, 5], [1, 16]),
        ([1, 16], [1, 16]),
        ([4, 4, 1], [4, 4, 1]),
        ([1, 8, 3], [1, 1, 16]),
        ((2, 2, 2, 2), [2, 2, 2, 2]),
    ],
)
def test_a_decision_for_a_tile_is_made_to_fit_from_the_innermost(
    decision: Sequence[int], fit: list[int]
) -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    factors = sch.sample_perfect_tile(i, 2, max_innermost_factor=4, decision=decision)
    assert values(sch, factors) == fit
    assert (*sch.trace.decisions.values(),) == (tuple(fit),)
    sch.split(i, factors)
    computes_the_same(elementwise(), sch.func)
    survives(sch, elementwise())


@given(st.integers(1, 360), st.lists(st.integers(-2, 12), min_size=2, max_size=4))
def test_what_fits_is_a_tile(extent: int, decision: list[int]) -> None:
    fit = fitted(extent, [decision[0], *(max(1, factor) for factor in decision[1:])])
    assert math.prod(fit) == extent
    assert fitted(extent, fit) == fit


def test_a_tile_of_an_unknown_extent_is_none_and_ones() -> None:
    sch = scheduled(SYMBOLIC)
    i, _ = sch.get_loops("C")
    factors = sch.sample_perfect_tile(i, 3, decision=[5])
    assert values(sch, factors) == [None, 1, 1]
    assert (*sch.trace.decisions.values(),) == ((-1, 1, 1),)
    assert [line.split(" = ")[0] for line in sch.trace.as_python()] == ["b0", "l1, l2", "_, v4, v5"]
    sch.split(i, factors)
    assert "T.where" not in sch.func.script()
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    again = trace.apply_to(scheduled(SYMBOLIC).func)
    assert structural_equal(again.func, sch.func)


def test_a_tile_of_an_unknown_extent_keeps_the_inner_factors_of_a_decision() -> None:
    sch = scheduled(SYMBOLIC)
    i, _ = sch.get_loops("C")
    assert values(sch, sch.sample_perfect_tile(i, 3, decision=[9, 2, 4])) == [None, 2, 4]
    assert (*sch.trace.decisions.values(),) == ((-1, 2, 4),)


def test_tiles_are_drawn_equally_often() -> None:
    sch = Schedule(matmul_relu(), seed=1)
    i, _, _ = sch.get_loops("Y")
    for _ in range(900):
        sch.sample_perfect_tile(i, 3, max_innermost_factor=4)
    tiles = {t for t in product(divisors(16), repeat=3) if math.prod(t) == 16 and t[-1] <= 4}
    equally_often(Counter(sch.trace.decisions.values()), tiles)


def test_a_tile_may_be_without_a_limit() -> None:
    sch = Schedule(matmul_relu(), seed=1)
    i, _, _ = sch.get_loops("Y")
    assert values(sch, sch.sample_perfect_tile(i, 1, -1)) == [16]
    for _ in range(50):
        sch.sample_perfect_tile(i, 2, -1)
    assert {d[-1] for d in sch.trace.decisions.values() if isinstance(d, tuple)} == {1, 2, 4, 8, 16}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"n": 1}, "loop i can't be cut into 1 factors: 2 to 256 are expected"),
        ({"n": 0, "max_innermost_factor": -1}, "can't be cut into 0 factors: 1 to 256"),
        ({"n": 10**9}, "can't be cut into 1000000000 factors"),
        ({"n": 2, "max_innermost_factor": 0}, "max_innermost_factor is 0: expected a positive"),
        ({"n": 2, "decision": [4]}, "can't be cut into 1 factors"),
        ({"n": 2, "decision": [4, 0]}, "decision [4, 0] is not a list of positive integers"),
        ({"n": 2, "decision": [-4, -4]}, "decision [-4, -4] is not a list of positive integers"),
        ({"n": 2, "decision": [4, True]}, "decision [4, True] is not a list of positive integers"),
        ({"n": 2, "decision": 4}, "decision 4 is not a list of positive integers"),
        ({"n": 2, "decision": []}, "decision [] is not a list of positive integers"),
    ],
)
def test_sample_perfect_tile_refuses_what_is_no_tile(
    arguments: dict[str, Any], reason: str
) -> None:
    sch = Schedule(matmul_relu())
    i, _, _ = sch.get_loops("Y")
    with refused(sch, reason, at="for i"):
        sch.sample_perfect_tile(i, **arguments)
    with refused(sch, "expected an integer, got 'x'", at="def main"):
        sch.sample_perfect_tile(i, "x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("position", "multiple", "decision", "fit"),
    [
        (1, 4, [4, 4], [4, 4]),
        (1, 4, [8, 2], [4, 4]),
        (1, 8, [2, 8, 1], [2, 8, 1]),
        (1, 4, [3, 2, 1], [4, 4, 1]),
        (0, 1, [3, 2], [8, 2]),
        (0, 2, [3, 1], [16, 1]),
        (2, 1, [4, 4], [4, 4]),
        (1, 5, [4, 4], [-1, 1]),
    ],
)
def test_a_decision_for_a_partitioned_tile_is_made_to_fit(
    position: int, multiple: int, decision: list[int], fit: list[int]
) -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    factors = sch.sample_partitioned_tile(i, len(decision), position, multiple, decision)
    assert values(sch, factors) == fit
    assert (*sch.trace.decisions.values(),) == (tuple(fit),)
    if fit[0] > 0:
        sch.split(i, factors)
        computes_the_same(elementwise(), sch.func)
    survives(sch, elementwise())


@given(st.integers(1, 60), st.integers(1, 3), st.integers(1, 3), st.data())
def test_partitioned_tiles_have_the_multiple_inside(
    extent: int, outer: int, inner: int, data: st.DataObject
) -> None:
    multiple = data.draw(st.sampled_from(divisors(extent)))
    tile = sample_partitioned(Random(0), extent, outer + inner, outer, multiple)
    assert len(tile) == outer + inner
    assert math.prod(tile) == extent
    assert math.prod(tile[outer:]) % multiple == 0


def test_partitioned_tiles_are_drawn_equally_often() -> None:
    rng = Random(2)
    drawn = Counter(sample_partitioned(rng, 24, 3, 1, 4) for _ in range(900))
    tiles = product(divisors(24), repeat=3)
    equally_often(drawn, {t for t in tiles if math.prod(t) == 24 and t[1] * t[2] % 4 == 0})


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((2, 0, 0), "innerpart_factor is 0: expected a positive number"),
        ((2, 3, 1), "partition_pos is 3: no inner factor of 2 begins there"),
        ((2, 2, 4), "partition_pos is 2: no inner factor of 2 begins there"),
        ((2, -1, 4), "partition_pos is -1: no inner factor of 2 begins there"),
        ((1, 0, 2), "can't be cut into 1 factors: 2 to 256 are expected"),
        ((2, 1, 2, [4, -4]), "decision [4, -4] is not a list of positive integers"),
    ],
)
def test_sample_partitioned_tile_refuses_what_is_no_tile(
    arguments: tuple[Any, ...], reason: str
) -> None:
    sch = Schedule(matmul_relu())
    i, _, _ = sch.get_loops("Y")
    with refused(sch, reason, at="for i"):
        sch.sample_partitioned_tile(i, *arguments)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (([], []), "0 candidates have 0 probabilities"),
        (([1], [0.5, 0.5]), "1 candidates have 2 probabilities"),
        (([1], [0.0]), "[0.0] are not probabilities, or all zero"),
        (([1], [-1.0]), "are not probabilities"),
        (([1], [float("nan")]), "are not probabilities"),
        (([1], [float("inf")]), "are not probabilities"),
        (([1], ["a"]), "are not probabilities"),
        (([1], [10**400]), "are not probabilities"),
        (([1.5], [1.0]), "expected an integer, got 1.5"),
        ((["a"], [1.0]), "expected an integer, got 'a'"),
        (([1, 2], [0.5, 0.5], 2), "decision 2 is not a position among 2 candidates"),
        (([1, 2], [0.5, 0.5], -1), "decision -1 is not a position among 2 candidates"),
    ],
)
def test_sample_categorical_refuses_what_is_no_choice(
    arguments: tuple[Any, ...], reason: str
) -> None:
    sch = Schedule(elementwise())
    with refused(sch, reason, at="def main"):
        sch.sample_categorical(*arguments)


def test_candidates_are_drawn_by_their_weights() -> None:
    sch = Schedule(elementwise(), seed=0)
    drawn = Counter(sch.get(sch.sample_categorical([7, 8, 9], [1, 0, 3])) for _ in range(400))
    assert drawn[8] == 0
    assert abs(drawn[7] - 100) < UNIFORM * math.sqrt(75)
    assert sch.get(sch.sample_categorical([7, 8], [1.0, 0.0], decision=1)) == 8


def test_a_decision_in_json_is_checked() -> None:
    sch, _ = location(1)
    text = sch.trace.to_json()
    text["instructions"][-1]["decision"] = -3  # type: ignore[index]
    with pytest.raises(TraceError, match="expected -2, -1 or the number of a loop, got -3"):
        Trace.from_json(text)
