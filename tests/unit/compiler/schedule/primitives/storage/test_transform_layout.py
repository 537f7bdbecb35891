"""`transform_layout`: requirements, padding, and what it does to the arrays of a caller."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler import te
from compiler.driver import build
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import verify
from compiler.schedule.error import TraceError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.schedule_asserts import (
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)

VIEW = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 4:vi * 4 + 4])
            T.writes(C[vi * 4:vi * 4 + 4])
            V = T.match_buffer(A[vi * 4:vi * 4 + 4], (4,), offset_factor=1)
            for j in range(4):
                C[vi * 4 + j] = V[j]
"""


def tile(i: Any, j: Any) -> tuple[Any, ...]:
    return i // 4, j // 4, i % 4, j % 4


def test_transform_layout_refuses_what_is_no_read_or_write() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "block B has no write 1; it has 0: B", at='"B"'):
        sch.transform_layout("B", ("write", 1), tile)
    with refused(sch, "block B does not touch C, but A, B", at='"B"'):
        sch.transform_layout("B", "C", tile)


@pytest.mark.parametrize(
    ("index_map", "reason"),
    [
        (lambda i, j: (i // 2, j), "lets two of them collide"),
        (lambda i, j: i, "loses the index j"),
        (lambda i, j: (i + 1, j), "starts at 1, not at 0"),
        (lambda i: i, "takes 1 indices, not 2"),
        (lambda i, j: "x", "gives 'x': expected an index"),
        ("lambda i, j: open('f')", "can't be called in a lambda"),
        (3, "expected an index map"),
        (lambda i, j: tuple(i // 2**n % 2 for n in range(17)), "dimensions"),
    ],
)
def test_transform_layout_refuses_what_is_no_layout(index_map: Any, reason: str) -> None:
    sch = Schedule(elementwise())
    with refused(sch, reason, at='"B"'):
        sch.transform_layout("B", ("write", 0), index_map)


def test_transform_layout_refuses_padding_without_a_value() -> None:
    sch = Schedule(elementwise(14))
    reason = "padded where axis0 == 3 and 2 <= axis2 or axis1 == 3 and 2 <= axis3"
    with refused(sch, reason, at='"B"'):
        sch.transform_layout("B", ("write", 0), tile)


@pytest.mark.parametrize(
    ("pad_value", "reason"),
    [
        (0, "the pad value is an integer, the elements are float32"),
        (lambda *i: i[0], "the pad value is int32, the elements are float32"),
        (lambda i: 0.0, "the pad value takes 1 indices, the layout has 4"),
        (lambda *i: "x", "expected one value"),
        ("lambda *i: open('f')", "the pad value is not understood"),
        (object(), "expected a number or a function of places"),
    ],
)
def test_transform_layout_refuses_what_is_no_pad_value(pad_value: Any, reason: str) -> None:
    sch = Schedule(elementwise(14))
    with refused(sch, reason, at='"B"'):
        sch.transform_layout("B", ("write", 0), tile, pad_value=pad_value)


def test_transform_layout_refuses_buffers_with_views_and_views() -> None:
    sch = scheduled(VIEW)
    with refused(sch, "block C has a view of A", at='"C"'):
        sch.transform_layout("C", "A", lambda i: (i // 4, i % 4))


def test_assumed_injective_maps_are_checked() -> None:
    sch = Schedule(elementwise(14))
    sch.transform_layout("B", "B", tile, assume_injective_transform=True)
    computes_the_same(elementwise(14), sch.func)
    with refused(sch, "may send two elements to one place", at='"B"'):
        sch.transform_layout("B", "B", lambda *i: i[:3], assume_injective_transform=True)


LAYOUTS: list[Callable[..., Any]] = [
    tile,
    lambda i, j: (j, i),
    lambda i, j: (i, j // 5, j % 5),
    lambda i, j: ((i * 7 + j) // 16, (i * 7 + j) % 16),
    lambda i, j: (j // 3, i, (j % 3)),
]


@given(st.integers(1, 9), st.sampled_from(LAYOUTS), st.sampled_from(["write first", "reorder"]))
def test_a_layout_of_an_intermediate_buffer_keeps_the_meaning(
    n: int, layout: Callable[..., Any], order: str
) -> None:
    func = elementwise(n) if layout is not LAYOUTS[3] else elementwise(7)
    sch = Schedule(func)
    if order == "reorder":
        sch.reorder(*reversed(sch.get_loops("B")))
    sch.transform_layout("B", "B", layout, pad_value=7.0)
    verify(sch.func)
    computes_the_same(func, sch.func)
    again = Trace.from_json(sch.trace.to_json()).apply_to(func)
    computes_the_same(func, again.func)


def in_layout(array: Any, layout: Callable[..., Any], shape: tuple[int, ...], pad: float) -> Any:
    """Return an array in a layout, by the layout's definition."""
    result = np.full(shape, pad, array.dtype)
    for place in np.ndindex(array.shape):
        result[layout(*place)] = array[place]
    return result


@given(st.integers(1, 9), st.sampled_from([*LAYOUTS[:3], LAYOUTS[4]]))
def test_parameters_are_passed_and_returned_in_their_layouts(
    n: int, layout: Callable[..., Any]
) -> None:
    func = elementwise(n)
    sch = Schedule(func)
    sch.transform_layout("B", "A", layout, pad_value=0.5)
    sch.transform_layout("C", "C", layout, pad_value=0.25)
    verify(sch.func)
    given_, result = sch.func.buffers
    array = np.random.default_rng(0).integers(-4, 5, (n, n)).astype("float32")
    inputs = {"A": in_layout(array, layout, static_shape(given_), 0.5)}
    got = evaluate(sch.func, inputs)["C"]
    expected = in_layout(array * 2 + 1, layout, static_shape(result), 0.25)
    np.testing.assert_array_equal(got, expected)


def test_a_reduction_writes_its_padding() -> None:
    A, B = te.placeholder((5, 6), name="A"), te.placeholder((6, 7), name="B")
    r = te.reduce_axis((0, 6), "k")
    C = te.compute((5, 7), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    sch = Schedule(te.create_prim_func([A, B, C], "main"))
    sch.transform_layout("C", "C", tile, pad_value=9.0)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype("float32") for s in ((5, 6), (6, 7)))
    result = np.zeros((2, 2, 4, 4), "float32")
    build(sch)(a, b, result)
    np.testing.assert_array_equal(result, in_layout(a @ b, tile, (2, 2, 4, 4), 9.0))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_reduction_in_an_outer_block_writes_its_padding(depth: int) -> None:
    """At depth 0 the loops that write zeros are the init of the outer block."""
    A, B = te.placeholder((5, 6), name="A"), te.placeholder((6, 7), name="B")
    r = te.reduce_axis((0, 6), "k")
    C = te.compute((5, 7), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    sch = Schedule(te.create_prim_func([A, B, C], "main"))
    sch.blockize(sch.get_loops("C")[depth])
    sch.transform_layout("C", "C", tile, pad_value=9.0)
    verify(sch.func)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype("float32") for s in ((5, 6), (6, 7)))
    result = np.zeros((2, 2, 4, 4), "float32")
    build(sch)(a, b, result)
    np.testing.assert_array_equal(result, in_layout(a @ b, tile, (2, 2, 4, 4), 9.0))


def test_a_function_of_the_place_can_be_the_pad_value() -> None:
    sch = Schedule(elementwise(3))
    pad = "lambda i, j: T.if_then_else(i < 1, T.float32(1), T.float32(-2))"
    sch.transform_layout("C", "C", lambda i, j: (i // 2, (i % 2) * 3 + j), pad_value=pad)
    array = np.ones((3, 3), "float32")
    got = evaluate(sch.func, {"A": array})["C"]
    np.testing.assert_array_equal(got, [[3, 3, 3, 3, 3, 3], [3, 3, 3, -2, -2, -2]])


def test_infinite_pad_values_live_in_traces() -> None:
    sch = Schedule(elementwise(3))
    sch.transform_layout("C", "C", lambda i, j: (i // 2, j, i % 2), pad_value=float("-inf"))
    again = Trace.from_json(sch.trace.to_json()).apply_to(elementwise(3))
    got = evaluate(again.func, {"A": np.ones((3, 3), "float32")})["C"]
    np.testing.assert_array_equal(got[1, :, 1], [-np.inf] * 3)


def test_whoever_calls_can_see_which_parameters_changed() -> None:
    def change(func: PrimFunc) -> Schedule:
        sch = Schedule(func)
        sch.transform_layout("Y", "A", lambda i, j: (j, i))
        sch.transform_layout("Y", "Y", lambda i, j: (j, i))
        return sch

    sch = change(matmul_relu())
    assert sch.layouts == {"A": ("lambda i, j: (j, i,)",)}
    assert sch.copy().layouts == sch.layouts
    with refused(sch, "parameter A has another layout than the workload's", at="def main"):
        sch.require_own_layouts()
    Schedule(matmul_relu()).require_own_layouts()


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 6))
    C = T.match_buffer(c, (n, 6))
    B = T.sblock_alloc_buffer((n, 6))
    for i, j in T.grid(n, 6):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(n, 6):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = B[vi, vj] + T.float32(1)
"""


@pytest.mark.parametrize(
    "layout",
    [
        lambda i, j: (j, i),
        lambda i, j: i * 6 + j,
        lambda i, j: (i // 4, j, i % 4),
        lambda i, j: (i // 5, j // 4, i % 5, j % 4),
    ],
)
@pytest.mark.parametrize("n", [3, 8, 10])
def test_layouts_of_symbolic_shapes_hold_for_every_size(layout: Callable[..., Any], n: int) -> None:
    sch = scheduled(SYMBOLIC)
    sch.transform_layout("B", "B", layout, pad_value=0.5)
    after = sch.func.specialize({"n": n})
    verify(after)
    computes_the_same(scheduled(SYMBOLIC).func.specialize({"n": n}), after)


def test_what_has_no_known_extent_is_not_divided_twice() -> None:
    sch = scheduled(SYMBOLIC)
    with refused(sch, "the extent of the index (i * 6 + j) // 5 is not understood", at='"B"'):
        sch.transform_layout("B", "B", lambda i, j: ((i * 6 + j) // 5, (i * 6 + j) % 5), 0.5)
    with refused(sch, "divides what has no known extent", at='"B"'):
        sch.transform_block_layout("B", lambda i, j: ((i + 1) // 4, (i + 1) % 4, j))
    with refused(sch, "the extent of the index i // 4 * 4 + j is not understood", at='"B"'):
        sch.transform_layout("B", "B", lambda i, j: (i // 4 * 4 + j, i % 4), 0.5)


def test_layouts_come_back_from_the_json_of_tvm() -> None:
    sch = Schedule(matmul_relu())
    sch.transform_layout("Y", ("write", 0), lambda i, j: (j, i))
    sch.transform_block_layout("C", lambda i, j: (i * 16 + j,))
    fresh = Schedule(matmul_relu())
    Trace.apply_json_to_schedule(json.loads(json.dumps(sch.trace.as_json())), fresh)
    assert structural_equal(fresh.func, sch.func)


def test_a_damaged_quotation_in_the_json_of_tvm_is_refused() -> None:
    sch = Schedule(matmul_relu())
    sch.transform_block_layout("C", lambda i, j: (j, i))
    damaged: Any = json.loads(json.dumps(sch.trace.as_json()))
    damaged[0][-1][1][1] = '"lambda'
    with pytest.raises(TraceError, match="is not a quoted string"):
        Trace.apply_json_to_schedule(damaged, Schedule(matmul_relu()))


def test_padding_is_written_where_the_buffer_is() -> None:
    schedule = Schedule(elementwise(5))
    schedule.blockize(schedule.get_loops("C")[1])
    schedule.cache_write("C", 0, "local")
    before = schedule.func
    schedule.transform_layout("C", "C_local", lambda i, j: (i, j // 2, j % 2), pad_value=0.0)
    verify(schedule.func)
    computes_the_same(before, schedule.func)
