"""Reductions, blocks, paddings and rings of any sizes compute what they did before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.property.acceptance import Acceptance
from tests.unit.compiler.schedule.schedule_asserts import computes_the_same

extents = st.integers(1, 7)
factors = st.integers(1, 4)


def product(n: int, m: int, k: int) -> PrimFunc:
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    return te.create_prim_func([A, B, C], "main")


def check(func: PrimFunc, schedule: Schedule) -> None:
    verify(schedule.func)
    computes_the_same(func, schedule.func)


@st.composite
def tiled(draw: st.DrawFn) -> tuple[PrimFunc, Schedule]:
    """Return a product, and a schedule with its loops split and put in some order."""
    func = product(draw(extents), draw(extents), draw(extents))
    schedule = Schedule(func)
    for loop in schedule.get_loops("C"):
        if draw(st.booleans()):
            schedule.split(loop, [None, draw(factors)])
    loops = schedule.get_loops("C")
    schedule.reorder(*draw(st.permutations(loops)))
    return func, schedule


def is_accepted(primitive: Callable[[], object]) -> bool:
    """Apply a primitive, and return whether it was accepted."""
    try:
        primitive()
    except ScheduleError:
        return False
    return True


decomposed = Acceptance()


@decomposed.at_least(0.25)
@settings(max_examples=60)
@given(drawn=tiled(), data=st.data())
def test_decompose_reduction(drawn: tuple[PrimFunc, Schedule], data: st.DataObject) -> None:
    func, schedule = drawn
    loop = data.draw(st.sampled_from(schedule.get_loops("C")))
    if decomposed.count(is_accepted(lambda: schedule.decompose_reduction("C", loop))):
        check(func, schedule)


factored = Acceptance()


@factored.at_least(0.04)
@settings(max_examples=60)
@given(drawn=tiled(), data=st.data())
def test_rfactor(drawn: tuple[PrimFunc, Schedule], data: st.DataObject) -> None:
    func, schedule = drawn
    loop = data.draw(st.sampled_from(schedule.get_loops("C")))
    axis = data.draw(st.integers(-3, 2))
    if factored.count(is_accepted(lambda: schedule.rfactor(loop, axis))):
        check(func, schedule)


blockized = Acceptance()


@blockized.at_least(0.4)
@settings(max_examples=60)
@given(drawn=tiled(), keep=st.booleans(), decomposes=st.booleans(), data=st.data())
def test_blockize_and_what_follows(
    drawn: tuple[PrimFunc, Schedule], keep: bool, decomposes: bool, data: st.DataObject
) -> None:
    func, schedule = drawn
    loop = data.draw(st.sampled_from(schedule.get_loops("C")))
    if blockized.count(is_accepted(lambda: schedule.blockize(loop, preserve_unit_iters=keep))):
        around = schedule.get_loops("C_o")
        if around and decomposes:
            outer_loop = data.draw(st.sampled_from(around))
            is_accepted(lambda: schedule.decompose_reduction("C_o", outer_loop))
    check(func, schedule)


@settings(max_examples=40)
@given(n=extents, m=extents, k=extents, padding=st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_pad_einsum(n: int, m: int, k: int, padding: list[int]) -> None:
    schedule = Schedule(product(n, m, k))
    schedule.pad_einsum("C", padding)
    check(product(n, m, k), schedule)


def padded_window(n: int, low: int, high: int, window: int, stride: int) -> PrimFunc:
    """Return a padded row and the sums of its windows."""
    size = n + low + high
    count = (size - window) // stride + 1
    return parse(f"""
@T.prim_func
def main(A: T.Buffer(({n},), "float32"), C: T.Buffer(({count},), "float32")):
    P = T.sblock_alloc_buffer(({size},))
    for i in range({size}):
        with T.sblock("P"):
            vi = T.axis.spatial({size}, i)
            T.reads(A[vi - {low}])
            T.writes(P[vi])
            P[vi] = T.if_then_else({low} <= vi and vi < {low + n}, A[vi - {low}], T.float32(1))
    for i, r in T.grid({count}, {window}):
        with T.sblock("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + P[vi * {stride} + vr]
""")


rows = st.builds(
    padded_window,
    st.integers(3, 9),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(1, 3),
    st.integers(1, 3),
)


padded_or_rolled = Acceptance()


@padded_or_rolled.at_least(0.15)
@settings(max_examples=60)
@given(func=rows, data=st.data())
def test_paddings_and_rings(func: PrimFunc, data: st.DataObject) -> None:
    schedule = Schedule(func)
    loop = schedule.get_loops("C")[0]
    if data.draw(st.booleans()):
        loop, _ = schedule.split(loop, [None, data.draw(factors)])
    if data.draw(st.booleans()):
        schedule.compute_at("P", loop, preserve_unit_loops=True)
    steps = data.draw(st.lists(st.sampled_from(["padding", "ring"]), min_size=1, max_size=2))
    for step in steps:
        if step == "ring":
            padded_or_rolled.count(is_accepted(lambda: schedule.rolling_buffer("P", 0)))
        elif around := schedule.get_loops("P"):
            inside = data.draw(st.sampled_from(around))
            padded_or_rolled.count(is_accepted(partial(schedule.decompose_padding, "P", inside)))
    check(func, schedule)
