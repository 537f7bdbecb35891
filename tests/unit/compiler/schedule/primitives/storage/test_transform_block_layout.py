"""The requirements of `transform_block_layout`, and that it keeps the meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    ROLLING,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)


def test_it_refuses_a_block_that_does_not_stand_alone() -> None:
    sch = Schedule(elementwise())
    sch.compute_at("B", sch.get_loops("C")[0])
    with refused(sch, "block C is not alone in loop i", at="for i"):
        sch.transform_block_layout("C", lambda i, j: (j, i))


def test_it_refuses_loops_that_are_not_the_iterators() -> None:
    sch = scheduled(HALF)
    reason = "block C does not run once for each iteration of its loops"
    with refused(sch, reason, at='"C"'):
        sch.transform_block_layout("C", lambda i: (i // 2, i % 2))
    sch = Schedule(elementwise())
    sch.split(sch.get_loops("B")[0], [None, 4])
    with refused(sch, "block B does not run once for each iteration of its loops", at='"B"'):
        sch.transform_block_layout("B", lambda i, j: (j, i))


def test_it_refuses_runs_that_may_not_change_places() -> None:
    sch = scheduled(ROLLING)
    with refused(sch, "block C", at='"C"'):
        sch.transform_block_layout("C", lambda i: (i // 3, i % 3))


@pytest.mark.parametrize(
    ("index_map", "reason"),
    [
        (lambda i, j, k: (i // 5, i % 5, j, k), "is not bijective"),
        (lambda i, j, k: (i, j), "loses the index k"),
        (lambda i, j: (i, j), "takes 2 indices, not 3"),
        (lambda i, j, k: (i, j * 16 + k), "is made of iterators of different kinds"),
        (lambda i, j, k: (i, j // 2, k), "lets two of them collide"),
    ],
)
def test_it_refuses_maps_that_do_not_fit(index_map: Callable[..., Any], reason: str) -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, reason, at='"Y"'):
        sch.transform_block_layout("Y", index_map)


@pytest.mark.parametrize(
    "index_map",
    [
        lambda i, j, k: (j, i, k),
        lambda i, j, k: (k, i * 16 + j),
        lambda i, j, k: (i // 4, j, i % 4, k // 2, k % 2),
        lambda i, j, k: (i // 16, k, j, i % 16),
    ],
)
def test_blocks_over_other_iterators_compute_the_same(index_map: Callable[..., Any]) -> None:
    func = matmul_relu()
    sch = Schedule(func)
    sch.transform_block_layout("Y", index_map)
    computes_the_same(func, sch.func)
