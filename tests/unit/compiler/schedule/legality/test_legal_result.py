"""What a primitive gives is a legal program with a text and a trace, whatever it began with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.driver import build
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from tests.property.check_schedule import Meaning, numbered
from tests.unit.compiler.schedule.schedule_asserts import SYMBOLIC, TRIANGLE, refused, scheduled

Act = Callable[[Schedule], object]


def holds(text: str, *acts: Act) -> Schedule:
    """Hold what must be true of every schedule after each of some primitives."""
    func = parse(text)
    schedule, meaning = Schedule(func), Meaning(func)
    for act in acts:
        act(schedule)
        meaning.hold(schedule)
    build(numbered(schedule.func), "cpu -num-cores=2").close()
    return schedule


# Loops and buffers of both index types

LONG_LOOPS = """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i in T.serial(T.int64(8)):
        for j in T.serial({extent}):
            with T.sblock("C"):
                vi = T.axis.spatial(T.int64(8), i)
                vj = T.axis.spatial({extent}, j)
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj] + T.float32(1)
"""
LONG = LONG_LOOPS.format(extent="T.int64(16)")
MIXED = LONG_LOOPS.format(extent="16")
SHORT_OUTSIDE = MIXED.replace("T.int64(8)", "8").replace("16, j", "T.int64(16), j")
SHORT_OUTSIDE = SHORT_OUTSIDE.replace("T.serial(16)", "T.serial(T.int64(16))")


@pytest.mark.parametrize("text", [LONG, MIXED, SHORT_OUTSIDE])
@pytest.mark.parametrize("depth", [0, 1])
def test_copies_are_counted_by_loops_of_one_type(text: str, depth: int) -> None:
    def tiled(schedule: Schedule) -> None:
        schedule.split(schedule.get_loops("C")[1], [None, 4])

    holds(text, tiled, lambda s: s.read_at(s.get_loops("C")[depth], "C", 0, "shared"))
    holds(text, tiled, lambda s: s.write_at(s.get_loops("C")[depth], "C", 0, "shared"))


@pytest.mark.parametrize("text", [LONG, MIXED, SHORT_OUTSIDE])
def test_loops_of_two_types_are_fused_to_the_wider(text: str) -> None:
    schedule = holds(text, lambda s: s.fuse(*s.get_loops("C")))
    assert "i_j_fused in range(T.int64(128))" in schedule.func.script()


@pytest.mark.parametrize("text", [LONG, MIXED, SHORT_OUTSIDE])
def test_a_copy_that_is_moved_counts_as_the_loops_around_it(text: str) -> None:
    holds(
        text,
        lambda s: s.cache_read("C", 0, "shared"),
        lambda s: s.compute_at("A_shared", s.get_loops("C")[0]),
    )


# Extents that depend on loops


@pytest.mark.parametrize(
    "act",
    [
        lambda s: s.reindex("C", ("write", 0)),
        lambda s: s.reindex_cache_read("C", 0, "global", lambda i, j: (i, j)),
        lambda s: s.reindex_cache_write("C", 0, "global", lambda i, j: (j, i)),
    ],
)
def test_no_buffer_has_a_dimension_that_varies(act: Act) -> None:
    schedule = scheduled(TRIANGLE)
    with refused(schedule, "the extent of iterator vj of block C varies", at='"C"'):
        act(schedule)


def test_a_copy_of_symbolic_shape_is_refused() -> None:
    schedule = scheduled(SYMBOLIC)
    with refused(schedule, "specialise the program first", at='"C"'):
        schedule.reindex_cache_write("C", 0, "global", lambda i, j: (j, i))


def test_a_block_of_loops_that_vary_reads_all_that_they_may() -> None:
    schedule = holds(TRIANGLE, lambda s: s.blockize(s.get_loops("C")[0]))
    assert "T.reads(A[0:8, 0:8])" in schedule.func.script()


# What stands outside of blocks

CHOSEN = """
@T.prim_func
def main(ids: T.Buffer((8,), "int32"), A: T.Buffer((8, 8), "float32"),
         C: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.sblock("zero"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
    for i, j in T.grid(8, 8):
        with T.sblock("C"):
            T.where(ids[i] % 2 == 0)
            vi = T.axis.spatial(8, i)
            vj = T.axis.spatial(8, j)
            C[vi, vj] = A[vi, vj] + T.float32(1)
"""


@pytest.mark.parametrize("depth", [0, 1])
def test_what_conditions_read_is_named_by_the_block_around_them(depth: int) -> None:
    holds(CHOSEN, lambda s: s.loop_partition(s.get_loops("C")[depth], [3, None]))


GATHERED = CHOSEN.replace("            T.where(ids[i] % 2 == 0)\n", "").replace(
    "vj = T.axis.spatial(8, j)", "vj = T.axis.spatial(8, ids[j] % 8)"
)


@pytest.mark.parametrize("depth", [0, 1])
def test_what_iterators_read_is_named_by_the_block_around_them(depth: int) -> None:
    schedule = holds(GATHERED, lambda s: s.blockize(s.get_loops("C")[depth]))
    assert "ids[0:8])" in schedule.func.script()


GATHER = """
@T.prim_func
def main(ids: T.Buffer((8,), "int32"), A: T.Buffer((6, 4), "float32"),
         C: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[ids[vi] % 6, vj] + T.float32(1)
"""


@pytest.mark.parametrize(
    "act",
    [
        lambda s: s.read_at(s.get_loops("C")[0], "C", 0, "local"),
        lambda s: s.reindex("C", ("read", 0)),
        lambda s: s.reindex_cache_read("C", 0, "shared", lambda i, j: (j, i)),
    ],
)
def test_a_copy_names_what_it_reads_to_find_its_place(act: Act) -> None:
    schedule = holds(GATHER, act)
    assert "ids[" in schedule.func.script().split("T.writes")[0]


# Views

VIEWS = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.sblock_alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[vi, vj])
            A0 = T.match_buffer(A[vi, vj], (1, 1), "float32", offset_factor=1)
            B[vi, vj] = A0[0, 0] + T.float32(1)
    for i, j in T.grid(8, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(B[vi, vj])
            T.writes(C[vi, vj])
            C0 = T.match_buffer(C[vi, vj], (1, 1), "float32", offset_factor=1)
            C0[0, 0] = B[vi, vj] * T.float32(2)
"""


@pytest.mark.parametrize(
    "act", [lambda s: s.compute_inline("B"), lambda s: s.reverse_compute_inline("C")]
)
def test_what_is_inlined_touches_what_its_views_are_of(act: Act) -> None:
    schedule = holds(VIEWS, act)
    assert "A[vi, vj] + T.float32(1.0)) * T.float32(2.0)" in schedule.func.script()


def test_no_view_is_made_of_a_place_that_memory_says() -> None:
    desc = parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("O"):
            vi = T.axis.spatial(4, i)
            O[vi] = A[vi]
""")
    impl = parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), O: T.Buffer((4,), "float32")):
    for i in range(4):
        O[i] = A[i]
""")
    TensorIntrin.register("copy_of_four", desc, impl, override=True)
    schedule = scheduled("""
@T.prim_func
def main(ids: T.Buffer((5,), "int32"), W: T.Buffer((6, 4), "float32"),
         O: T.Buffer((5, 4), "float32")):
    for i, j in T.grid(5, 4):
        with T.sblock("O"):
            vi, vj = T.axis.remap("SS", [i, j])
            O[vi, vj] = W[ids[vi], vj]
""")
    before = schedule.func
    with refused(
        schedule, "can't prove that the region of W that A matches is in bounds", at="def"
    ):
        schedule.tensorize(schedule.get_loops("O")[1], "copy_of_four")
    assert schedule.func is before


# Traces, and what is declared but never done

ELEMENTWISE = """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), C: T.Buffer((8, 16), "float32"),
         D: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj], D[vi, vj])
            T.writes(C[vi, vj], D[vi, vj])
            C[vi, vj] = A[vi, vj] + T.float32(1)
"""


def test_a_partition_with_a_rest_is_replayed_from_its_json() -> None:
    schedule = holds(ELEMENTWISE, lambda s: s.loop_partition(s.get_loops("C")[1], [3, 3, 3]))
    assert schedule.trace.instructions[-1].arguments[1] == ("factors", (3, 3, 3, None))


def test_a_buffer_that_is_only_declared_is_not_copied() -> None:
    schedule = scheduled(ELEMENTWISE)
    loop, _ = schedule.get_loops("C")
    with refused(schedule, "no block under loop i reads D, whatever is declared", at="range(8)"):
        schedule.read_at(loop, "C", 1, "global")
    with refused(schedule, "no block under loop i writes D, whatever is declared", at="range(8)"):
        schedule.write_at(loop, "C", 1, "global")


# Reductions that an earlier run of the same blocks began

PARTITIONED = """
@T.prim_func
def main(A: T.Buffer((6, 3), "float32"), C: T.Buffer((6,), "float32")):
    for k in range(3):
        with T.sblock("run"):
            T.reads()
            T.writes()
            for i in range(6):
                with T.sblock("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    T.reads(A[vi, vk])
                    T.writes(C[vi])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
"""


def test_a_reduction_over_loops_outside_the_scope_does_not_start_anew() -> None:
    schedule = scheduled(PARTITIONED)
    with refused(schedule, "may read what C held before the loop", at='"C"'):
        schedule.write_at(schedule.get_loops("C")[-1], "C", 0, "global")
    with refused(schedule, "adds to what C held before", at='"C"'):
        schedule.cache_write("C", 0, "global")


SUMS_IN_EACH = """
@T.prim_func
def main(A: T.Buffer((3, 4), "float32"), C: T.Buffer((2, 3), "float32")):
    B = T.sblock_alloc_buffer((3,))
    for i in T.parallel(2):
        for j, k in T.grid(3, 4):
            with T.sblock("B"):
                vj, vk = T.axis.remap("SR", [j, k])
                with T.init():
                    B[vj] = T.float32(0)
                B[vj] = B[vj] + A[vj, vk]
        for j in range(3):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[2 - vj] * T.float32(2)
"""


def test_parallel_iterations_do_not_share_the_partial_sums_of_each() -> None:
    schedule = scheduled(SUMS_IN_EACH)
    with refused(schedule, "iterations of a parallel loop race", at="def main"):
        schedule.rfactor(schedule.get_loops("B")[-1], 0)
