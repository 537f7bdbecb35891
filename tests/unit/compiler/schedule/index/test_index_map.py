"""Maps of indices: from functions and from text, what they do to shapes, and their inverses."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import Expr, IntImm, Var
from compiler.ir.core.visit import substitute
from compiler.schedule.index.index_map import IndexMap, IndexMapError, show
from compiler.schedule.index.index_map_inverse import inverse_of, is_injective
from compiler.schedule.schedule import Schedule
from tests.property.acceptance import Acceptance
from tests.unit.compiler.schedule.schedule_asserts import elementwise


def at(expr: Expr, params: tuple[Var, ...], place: tuple[int, ...]) -> int:
    values: dict[Var, Expr] = {p: IntImm(n) for p, n in zip(params, place, strict=True)}
    value = simplify(substitute(expr, values))
    assert isinstance(value, IntImm)
    return value.value


def goes_to(index_map: IndexMap, place: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(at(result, index_map.params, place) for result in index_map.results)


@pytest.mark.parametrize(
    "text",
    [
        "lambda i, j: (i // 4, j, i % 4,)",
        "lambda i: (i,)",
        "lambda i, j: (i * 30 + j,)",
        "lambda i: ((i + 3) // 8, (i + 3) % 8,)",
        "lambda: ()",
    ],
)
def test_a_map_is_the_text_that_it_prints(text: str) -> None:
    index_map = IndexMap.parse(text)
    assert str(index_map) == text
    assert str(IndexMap.parse(str(index_map))) == text


def test_a_function_and_its_text_are_one_map() -> None:
    index_map = IndexMap.from_func(lambda i, *rest: [rest[-1], i // 2, *rest[:-1], i % 2], ndim=3)
    assert str(index_map) == "lambda i, rest_0, rest_1: (rest_1, i // 2, rest_0, i % 2,)"
    assert goes_to(index_map, (7, 1, 2)) == (2, 3, 1, 1)


def test_parameters_after_any_number_are_the_last_indices() -> None:
    index_map = IndexMap.from_func(lambda *rest, k: [*rest, k // 4, k % 4], ndim=3)
    assert str(index_map) == "lambda rest_0, rest_1, k: (rest_0, rest_1, k // 4, k % 4,)"


def test_sampled_numbers_count_as_their_values() -> None:
    sch = Schedule(elementwise())
    outer, inner = sch.sample_perfect_tile(sch.get_loops("B")[0], 2, decision=[4, 4])
    assert outer is not None
    assert inner is not None
    sch.transform_layout("B", "B", lambda i, j: (i // (outer * inner // 4), i % inner, j))
    assert "lambda i, j: (i // 4, i % 4, j,)" in str(sch.trace)
    assert sch.trace.apply_to(elementwise()).func.script() == sch.func.script()


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "lambda i: __import__('os')",
        "lambda i: i.__class__",
        "lambda i: [x for x in i]",
        "lambda i: (lambda: i)()",
        "lambda i=1: i",
        "lambda **i: i",
        "lambda i: j",
        "lambda i: i ** 9999",
        "lambda i: 1.5",
        "lambda i: 'x'",
        "lambda i: 1 // 0",
        "lambda i: i / 2",
        "lambda i: i < 2",
        "lambda i: open('f')",
        "lambda i:",
        "lambda i: " + "-" * 500 + "i",
        "lambda i: " + "[" * 90 + "]" * 90,
        "lambda i: " + "i[" * 90 + "0" + "]" * 90,
        "lambda i: (" + "i, " * 40 + ")",
        "lambda i: " + "i + " * 400 + "i",
    ],
)
def test_text_that_is_no_map_is_refused_and_never_run(text: str) -> None:
    with pytest.raises(IndexMapError):
        IndexMap.parse(text)


@pytest.mark.parametrize(
    "function", [lambda i: "x", lambda i: 1.5, lambda i: i / 2, lambda *, i: i, 3]
)
def test_a_function_that_gives_no_indices_is_refused(function: Any) -> None:
    with pytest.raises(IndexMapError):
        IndexMap.from_func(function)


@pytest.mark.parametrize(
    ("text", "shape", "new_shape", "inverse", "padding"),
    [
        ("lambda i: (i // 4, i % 4)", (16,), (4, 4), "(axis0 * 4 + axis1,)", "T.bool(False)"),
        ("lambda i: (i // 4, i % 4)", (14,), (4, 4), "(axis0 * 4 + axis1,)",
         "axis0 == 3 and 2 <= axis1"),
        ("lambda i: (i // 4, i % 4)", (3,), (1, 4), "(axis0 * 4 + axis1,)", "axis1 == 3"),
        ("lambda i, j: (j, i)", (3, 5), (5, 3), "(i, j)", "T.bool(False)"),
        ("lambda i, j: (i * 30 + j,)", (14, 30), (420,), "(axis0 // 30, axis0 % 30)",
         "T.bool(False)"),
        ("lambda i, j: ((i * 10 + j) // 4, (i * 10 + j) % 4)", (3, 10), (8, 4),
         "((axis0 * 4 + axis1) // 10, (axis0 * 4 + axis1) % 10)", "30 <= axis0 * 4 + axis1"),
        ("lambda i: ((i + 3) // 8, (i + 3) % 8)", (20,), (3, 8), "(axis0 * 8 + axis1 - 3,)",
         "axis0 == 0 and axis1 < 3 or axis0 == 2 and axis1 == 7"),
        ("lambda i: (i // 16, i // 4 % 4, i % 4)", (59,), (4, 4, 4),
         "(axis0 * 16 + axis1 * 4 + axis2,)", "axis0 == 3 and 11 <= axis1 * 4 + axis2"),
        ("lambda i, j: (i, 0, j)", (4, 8), (4, 1, 8), "(i, j)", "T.bool(False)"),
        ("lambda i: (i % 8,)", (6,), (8,), "(axis0,)", "6 <= axis0"),
    ],
)  # fmt: skip
def test_maps_are_inverted_with_their_padding(
    text: str, shape: tuple[int, ...], new_shape: tuple[int, ...], inverse: str, padding: str
) -> None:
    index_map = IndexMap.parse(text)
    assert index_map.map_shape(shape) == new_shape
    found = inverse_of(index_map, shape)
    assert str(found.index_map).split(": ", 1)[1].replace(",)", ")") == inverse.replace(",)", ")")
    assert show(found.index_map.params, found.padding) == padding


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("lambda i: (i // 2,)", (16,)),
        ("lambda i: (i % 2,)", (16,)),
        ("lambda i: (i // 8, i % 4)", (32,)),
        ("lambda i: (i, i)", (4,)),
        ("lambda i: (i // 4, i)", (16,)),
        ("lambda i, j: (i + j,)", (4, 4)),
        ("lambda i, j: (i,)", (4, 4)),
        ("lambda i, j: (i * 16 + j,)", (4, 8)),
        ("lambda i: (i * 2,)", (8,)),
        ("lambda i: (i * i,)", (8,)),
        ("lambda i: (7 - i,)", (8,)),
        ("lambda i: (i + 1,)", (8,)),
        ("lambda i: (i // 3, i % 3 // 2, i % 2)", (18,)),
        ("lambda i: (min(i, 3),)", (8,)),
        ("lambda i: ((i - 2) % 8,)", (6,)),
        ("lambda i: ((i - 3) // 2 % 4, (i - 3) % 2)", (6,)),
    ],
)
def test_maps_that_lose_elements_or_leave_gaps_are_not_inverted(
    text: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(IndexMapError):
        inverse_of(IndexMap.parse(text), shape)


def test_a_map_with_gaps_may_be_injective_all_the_same() -> None:
    assert is_injective(IndexMap.parse("lambda i: (i * 2,)"), (8,))
    assert is_injective(IndexMap.parse("lambda i, j: (i * 16 + j,)"), (4, 8))
    assert not is_injective(IndexMap.parse("lambda i, j: (i * 4 + j,)"), (4, 8))
    assert not is_injective(IndexMap.parse("lambda i: (i // 2,)"), (8,))


@st.composite
def maps(draw: st.DrawFn) -> tuple[IndexMap, tuple[int, ...]]:
    """Digits of two indices, or of both joined, in any order, some of them joined again."""
    shape = (draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    sources = ["i", "j"]
    if draw(st.booleans()):
        sources = [f"(i * {shape[1]} + j)"]
    shift = draw(st.integers(0, 2))
    parts: list[tuple[str, int]] = []
    for number, plain in enumerate(sources):
        source, size = plain, shape[number] if len(sources) > 1 else prod(shape)
        factor = draw(st.integers(1, 4))
        if shift and factor > shift:
            source = f"({plain} + {shift})"
            size += shift
        if factor == 1:
            parts.append((source, size))
        else:
            parts.append((f"{source} // {factor}", -(-size // factor)))
            parts.append((f"{source} % {factor}", factor))
    parts = draw(st.permutations(parts))
    results = [text for text, _ in parts]
    if len(parts) > 2 and draw(st.booleans()):
        (a, _), (b, size) = parts[:2]
        results = [f"({a}) * {size} + {b}", *results[2:]]
    return IndexMap.parse(f"lambda i, j: ({', '.join(results)},)"), shape


inverted = Acceptance()


@inverted.at_least(0.8)
@given(maps())
def test_an_inverse_finds_every_element_and_nothing_else(
    given_map: tuple[IndexMap, tuple[int, ...]],
) -> None:
    index_map, shape = given_map
    new_shape = index_map.map_shape(shape)
    sources = {goes_to(index_map, p): p for p in product(*map(range, shape))}
    try:
        inverse = inverse_of(index_map, shape)
    except IndexMapError:
        inverted.count(False)
        return
    inverted.count(True)
    assert len(sources) == prod(shape)
    params = inverse.index_map.params
    for target in product(*map(range, new_shape)):
        assert bool(at(inverse.padding, params, target)) == (target not in sources)
        if target in sources:
            assert goes_to(inverse.index_map, target) == sources[target]
