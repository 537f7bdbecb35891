"""The requirements of `transform_block_layout`, and that it keeps the meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compiler.driver import build
from compiler.ir.core.nodes import Var
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.te.value import Value
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


SYMBOLIC_COLUMNS = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (3, n, 4), "float32")
    C = T.match_buffer(c, (n * 3,), "float32")
    for i, j, k in T.grid(3, n, 4):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi * n + vj] = T.float32(0)
            C[vi * n + vj] = C[vi * n + vj] + A[vi, vj, vk]
"""


@pytest.mark.parametrize("n", [1, 2, 7])
def test_iterators_of_symbolic_extents_are_numbered(n: int) -> None:
    sch = scheduled(SYMBOLIC_COLUMNS)
    size = Value(sch.func.buffers[0].shape[1])
    sch.transform_block_layout("C", lambda i, j, k: (i * size + j, k))
    text = sch.func.script()
    assert "C[v0] = C[v0] + A[v0 // n, v0 % n, v1]" in text, text
    again = Trace.from_json(sch.trace.to_json()).apply_to(scheduled(SYMBOLIC_COLUMNS).func)
    assert again.func.script() == text
    verify(sch.func)
    a = np.random.default_rng(n).integers(-9, 9, (3, n, 4)).astype("float32")
    c = np.full(3 * n, np.nan, "float32")
    build(sch.func.specialize({"n": n}), "cpu -num-cores=1")(a, c)
    np.testing.assert_array_equal(c, a.sum(2).ravel())


def test_a_map_names_indices_and_sizes_alone() -> None:
    sch = scheduled(SYMBOLIC_COLUMNS)
    other = Value(Var("m"))
    with refused(sch, "the function names m: expected indices, and the sizes n", at='"C"'):
        sch.transform_block_layout("C", lambda i, j, k: (i * other + j, k))
    with refused(sch, "'m' can't stand in a lambda", at='"C"'):
        sch.transform_block_layout("C", "lambda i, j, k: (i * m + j, k)")


@pytest.mark.parametrize("n", [1, 7])
def test_a_buffer_of_symbolic_rows_becomes_a_vector(n: int) -> None:
    sch = scheduled(SYMBOLIC_COLUMNS)
    size = Value(sch.func.buffers[0].shape[1])
    sch.transform_layout("C", "A", lambda i, j, k: i * size * 4 + j * 4 + k)
    assert 'A: T.Buffer(("n * 12",)' in sch.func.script(), sch.func.script()
    func = sch.func.specialize({"n": n})
    verify(func)
    a = np.random.default_rng(n).integers(-9, 9, (3, n, 4)).astype("float32")
    c = np.full(3 * n, np.nan, "float32")
    build(func, "cpu -num-cores=1")(a.ravel(), c)
    np.testing.assert_array_equal(c, a.sum(2).ravel())
