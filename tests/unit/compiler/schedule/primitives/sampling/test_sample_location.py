"""Locations that `sample_compute_location` may draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    For,
)
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.primitives.sampling.draws import (
    equally_often,
    location,
    survives,
)
from tests.unit.compiler.schedule.schedule_asserts import (
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
)


@pytest.mark.parametrize(
    ("decision", "chosen"), [(-9, -1), (-2, -1), (-1, -1), (0, 0), (1, 1), (2, 1), (99, 1)]
)
def test_a_decision_for_a_location_is_the_possible_one_before(decision: int, chosen: int) -> None:
    sch, loop = location(decision)
    assert (*sch.trace.decisions.values(),) == (chosen,)
    sch.compute_at("Y", loop)
    computes_the_same(matmul_relu(), sch.func)
    assert structural_equal(sch.func, matmul_relu()) == (chosen == -1)
    survives(sch, matmul_relu())


def test_a_location_is_a_loop_around_the_consumers() -> None:
    sch, loop = location(1)
    assert isinstance(at := sch.get(loop), For)
    assert at is sch.get(sch.get_loops("C")[1])


@pytest.mark.parametrize("primitive", ["compute_at", "reverse_compute_at"])
def test_a_location_may_be_in_other_blocks(primitive: str) -> None:
    sch = Schedule(elementwise())
    inline = sch.sample_compute_location("B", decision=-2)
    block = sch.get_block("B" if primitive == "compute_at" else "C")
    getattr(sch, primitive)(block, inline)
    expected = Schedule(elementwise())
    getattr(expected, primitive.replace("_at", "_inline"))(
        expected.get_block(block_name(primitive))
    )
    assert structural_equal(sch.func, expected.func)
    with refused(sch, f"is dead: {primitive} consumed it", at="def main"):
        sch.get_loops(block)
    again = Trace.from_json(sch.trace.to_json()).apply_to(elementwise())
    assert structural_equal(again.func, sch.func)


def block_name(primitive: str) -> str:
    return "B" if primitive == "compute_at" else "C"


def test_only_what_can_be_inlined_is() -> None:
    assert Schedule(elementwise()).sample_compute_location("B", -2) is not None
    sch = Schedule(elementwise())
    sch.sample_compute_location("C", -2)
    assert (*sch.trace.decisions.values(),) == (-1,)


def test_locations_are_drawn_equally_often_anew() -> None:
    sch = Schedule(elementwise(), seed=0)
    for _ in range(400):
        sch.sample_compute_location("B")
    equally_often(Counter(sch.trace.decisions.values()), {-2, -1, 0, 1})
    sch, _ = location(1)
    again = [sch.trace.apply_to(matmul_relu(), [None], seed=n) for n in range(20)]
    drawn = {tuple(drawn.trace.decisions.values()) for drawn in again}
    assert drawn == {(-1,), (0,), (1,)}


def test_loops_of_one_iteration_are_no_locations() -> None:
    sch = Schedule(elementwise())
    sch.add_unit_loop(sch.get_loops("C")[0])
    sch.sample_compute_location("B", 0)
    assert (*sch.trace.decisions.values(),) == (-1,)


def test_loops_below_a_reduction_are_no_locations() -> None:
    sch = Schedule(matmul_relu())
    sch.cache_read("Y", 0, "global")
    _, _, k = sch.get_loops("Y")
    sch.sample_compute_location("A_global", 2)
    i, j, _ = sch.get_loops("Y")
    sch.reorder(i, k, j)
    sch.sample_compute_location("A_global", 2)
    sch.sample_compute_location("A_global", 1)
    assert [*sch.trace.decisions.values()] == [1, 1, 1]


@pytest.mark.parametrize(
    "use",
    [
        lambda sch, loop: sch.parallel(loop),
        lambda sch, loop: sch.split(loop, [None, 2]),
        lambda sch, loop: sch.get(loop),
    ],
)
@pytest.mark.parametrize(("decision", "place"), [(-2, "inline"), (-1, "root")])
def test_a_location_that_is_no_loop_is_none(
    use: Callable[[Schedule, LoopRV], object], decision: int, place: str
) -> None:
    sch = Schedule(elementwise())
    loop = sch.sample_compute_location("B", decision)
    with refused(sch, place, at="def main"):
        use(sch, loop)
    sch.remove_rv(loop)
    with refused(sch, "is dead: remove_rv consumed it", at="def main"):
        sch.compute_at("B", loop)


def test_sample_compute_location_refuses_the_root_and_what_is_no_number() -> None:
    sch = Schedule(elementwise())
    with refused(sch, '"root" is the root block', at="def main"):
        sch.sample_compute_location("root")
    with refused(sch, "expected an integer, got 'x'", at="def main"):
        sch.sample_compute_location("B", "x")  # type: ignore[arg-type]
