"""Row-major numbers of indices with symbolic extents: which are found, and their digits."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import Expr, IntImm, Var
from compiler.ir.core.visit import substitute
from compiler.schedule.index.index_map import IndexMap
from compiler.schedule.index.index_map_inverse import inverse_of
from compiler.schedule.index.layout_shape import map_extents
from compiler.schedule.index.row_major import renumbered
from compiler.te.value import Value, as_value

N, M = Var("n"), Var("m")
n, m = Value(N), Value(M)


def sizes(*given: Value | int) -> tuple[Expr, ...]:
    return tuple(
        IntImm(size) if isinstance(size, int) else as_value(size, "int32").expr for size in given
    )


def value_at(expr: Expr, points: Mapping[Var, int]) -> int:
    value = simplify(substitute(expr, {var: IntImm(number) for var, number in points.items()}))
    assert isinstance(value, IntImm), value
    return value.value


MAPS = [
    (lambda i, j: i * n + j, (3, n)),
    (lambda i, j, k: i * n * 4 + j * 4 + k, (3, n, 4)),
    (lambda i, j, k: (k, i * m + j), (n, m, 5)),
    (lambda i, j, k: (j * m + k, i // 2, i % 2), (4, n, m)),
    (lambda x, i, y, j: x * 3 * n + i * n + y * n + j, (1, 3, 1, n)),
    (lambda i, j: j + n * i, (3, n)),
]


@pytest.mark.parametrize(("function", "shape"), MAPS)
def test_the_inverse_returns_to_each_element(
    function: object, shape: tuple[Value | int, ...]
) -> None:
    index_map = IndexMap.from_func(function)  # type: ignore[arg-type]
    old_sizes = sizes(*shape)
    inverse = inverse_of(index_map, old_sizes)
    new_sizes = map_extents(index_map, old_sizes)
    for a, b in ((1, 1), (2, 5), (7, 3)):
        symbols = {N: a, M: b}
        extents = [value_at(size, symbols) for size in old_sizes]
        limits = [value_at(size, symbols) for size in new_sizes]
        seen = set()
        for element in itertools.product(*map(range, extents)):
            at = dict(zip(index_map.params, element, strict=True))
            place = tuple(value_at(r, {**symbols, **at}) for r in index_map.results)
            assert all(0 <= index < limit for index, limit in zip(place, limits, strict=True))
            assert place not in seen
            seen.add(place)
            back = dict(zip(inverse.index_map.params, place, strict=True))
            values = (value_at(r, {**symbols, **back}) for r in inverse.index_map.results)
            assert tuple(values) == element
        assert not inverse.has_padding


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda i, j: i * n + j, (3, m)),
        (lambda i, j: i * n + j, (3, 4)),
        (lambda i, j: i * n + j + 1, (3, n)),
        (lambda i, j: j * 3 + i * n, (3, n)),
        (lambda i, j: (i * n + j, j), (3, n)),
        (lambda i, j: i // 2 * n + j, (3, n)),
        (lambda i: i * n, (3,)),
        (lambda i, j: i * 4 + j, (3, 4)),
    ],
)
def test_other_indices_are_no_such_numbers(
    function: object, shape: tuple[Value | int, ...]
) -> None:
    index_map = IndexMap.from_func(function)  # type: ignore[arg-type]
    assert renumbered(index_map, sizes(*shape)) is None
