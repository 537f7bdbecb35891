"""`rolling_buffer`: a ring of one tile, and each requirement refused."""

from __future__ import annotations

import pytest

from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    computes_the_same,
    elementwise,
    refused,
    scheduled,
)

WINDOW = """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((10, 8), "float32")):
    B = T.sblock_alloc_buffer((12, 10))
    for i, j in T.grid(12, 10):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, r, s in T.grid(10, 8, 3, 3):
        with T.sblock("C"):
            vi, vj, vr, vs = T.axis.remap("SSRR", [i, j, r, s])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi + vr, vj + vs]
"""


def windows(depth: int, factor: int | None = None) -> Schedule:
    """Return a schedule where the producer makes what a window reads in one tile."""
    schedule = scheduled(WINDOW)
    loop = schedule.get_loops("C")[depth]
    if factor is not None:
        loop, _ = schedule.split(loop, [None, factor])
    schedule.compute_at("B", loop)
    return schedule


@pytest.mark.parametrize("depth", [0, 1])
@pytest.mark.parametrize("factor", [None, 2, 3, 4])
def test_rolling_buffer_keeps_what_is_computed(depth: int, factor: int | None) -> None:
    schedule = windows(depth, factor)
    schedule.rolling_buffer("B", 0)
    verify(schedule.func)
    computes_the_same(parse(WINDOW), schedule.func)


def test_rolling_buffer_makes_a_ring() -> None:
    schedule = windows(0)
    schedule.rolling_buffer("B", 0)
    becomes(
        schedule,
        """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((10, 8), "float32")):
    B = T.sblock_alloc_buffer((3, 10))
    for i in range(10):
        for ax0, ax1 in T.grid(3, 10):
            with T.sblock("B"):
                vi = T.axis.opaque(12, i + ax0)
                vj = T.axis.spatial(10, ax1)
                T.where(i < 1 or 2 <= ax0)
                B[vi % 3, vj] = A[vi, vj] * T.float32(2)
        for j, r, s in T.grid(8, 3, 3):
            with T.sblock("C"):
                vi = T.axis.opaque(10, i)
                vj, vr, vs = T.axis.remap("SRR", [j, r, s])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + B[(vi + vr) % 3, vj + vs]
""",
    )


def test_rolling_buffer_of_a_reduction() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((14,), "float32"), C: T.Buffer((10,), "float32")):
    B = T.sblock_alloc_buffer((12,))
    for i, r in T.grid(12, 3):
        with T.sblock("B"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi + vr]
    for i, r in T.grid(10, 3):
        with T.sblock("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi + vr]
"""
    schedule = scheduled(text)
    i, _ = schedule.get_loops("C")
    i_0, _ = schedule.split(i, [None, 5])
    schedule.compute_at("B", i_0)
    schedule.rolling_buffer("B", 0)
    verify(schedule.func)
    computes_the_same(parse(text), schedule.func)


# Requirements


def test_rolling_buffer_refuses_a_write_that_is_not_there() -> None:
    schedule = windows(0)
    with refused(schedule, "block B has no write 1; it has 0: B", at='"B"'):
        schedule.rolling_buffer("B", 1)


def test_rolling_buffer_refuses_an_output() -> None:
    schedule = Schedule(elementwise())
    with refused(schedule, "block C is an output block, as it writes C: it must stay", at='"C"'):
        schedule.rolling_buffer("C", 0)


def test_rolling_buffer_refuses_a_block_that_adds_to_what_was_there() -> None:
    schedule = scheduled(WINDOW.replace("B[vi, vj] = A", "B[vi, vj] = B[vi, vj] + A"))
    with refused(schedule, "does not only compute one element from its inputs", at='"B"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_a_buffer_that_shares_no_loop_with_its_readers() -> None:
    schedule = scheduled(WINDOW)
    with refused(schedule, "block B and the readers of B share no loop", at='"B"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_loops_that_are_not_serial() -> None:
    schedule = scheduled(WINDOW)
    i, j, _, _ = schedule.get_loops("C")
    schedule.compute_at("B", j)
    schedule.parallel(i)
    with refused(schedule, "loop i is parallel: tiles must come in order", at="for i in"):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_tiles_that_do_not_overlap() -> None:
    schedule = Schedule(elementwise())
    schedule.compute_at("B", schedule.get_loops("C")[0])
    with refused(schedule, "the tiles of B that block B writes do not overlap", at='"B"'):
        schedule.rolling_buffer("B", 0)


PRODUCER = """
@T.prim_func
def main(A: T.Buffer((40,), "float32"), C: T.Buffer((8, 3), "float32")):
    B = T.sblock_alloc_buffer((40,))
    for i in range(8):
        for j in range(3):
            with T.sblock("B"):
                v = T.axis.spatial(40, PLACE)
                WHERE
                B[v] = A[v] * T.float32(2)
        for j in range(3):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[READ]
"""


def producer(place: str, read: str, where: str = "T.reads(A[v])") -> Schedule:
    return scheduled(PRODUCER.replace("PLACE", place).replace("READ", read).replace("WHERE", where))


def test_rolling_buffer_refuses_tiles_that_begin_elsewhere() -> None:
    producer("i * 2 + j", "vi * 2 + vj").rolling_buffer("B", 0)
    schedule = producer("i * 2 + j + 3", "vi * 2 + vj + 3")
    with refused(schedule, "tiles of B do not begin at multiples of a loop", at='"B"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_a_reader_of_other_tiles() -> None:
    schedule = producer("i * 2 + j", "14 - vi * 2 + vj")
    with refused(schedule, "has not written in the same tile", at='"C"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_a_predicate_on_more_than_an_iterator() -> None:
    schedule = producer("i * 2 + j", "vi * 2 + vj", "T.where(i + j < 9)")
    with refused(schedule, "predicate of block B is not on single iterators", at='"B"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_a_block_under_a_condition() -> None:
    text = PRODUCER.replace("PLACE", "i * 2 + j").replace("READ", "vi * 2 + vj")
    text = text.replace("                WHERE\n", "")
    head, rest = text.split('            with T.sblock("B"):\n')
    body, tail = rest.split('        for j in range(3):\n            with T.sblock("C")')
    inner = body.replace("                ", "                    ")
    text = (
        f'{head}            if j < 5:\n                with T.sblock("B"):\n{inner}'
        f'        for j in range(3):\n            with T.sblock("C"){tail}'
    )
    schedule = scheduled(text)
    with refused(schedule, "block B is under a condition", at="if j < 5"):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_two_writers() -> None:
    two = PRODUCER.replace("PLACE", "i * 2 + j").replace("READ", "vi * 2 + vj")
    two = (
        two.replace("                WHERE\n", "")
        + """
    for i in range(40):
        with T.sblock("D"):
            v = T.axis.spatial(40, i)
            B[v] = A[v]
"""
    )
    schedule = scheduled(two)
    with refused(schedule, "block B is not a complete block: block D writes B, too", at='"D"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_a_loop_that_moves_two_dimensions() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((10, 10), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((10, 10))
    for i in range(8):
        for j, k in T.grid(3, 3):
            with T.sblock("B"):
                vj = T.axis.spatial(10, i + j)
                vk = T.axis.spatial(10, i + k)
                B[vj, vk] = A[vj, vk] * T.float32(2)
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi, vi] + B[vi + 2, vi]
""")
    with refused(schedule, "loop i moves tiles of B along two dimensions", at='"B"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_a_dimension_of_another_iterator() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((10, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    B = T.sblock_alloc_buffer((10, 4))
    for i in range(8):
        for k, j in T.grid(4, 3):
            with T.sblock("B"):
                vk = T.axis.spatial(4, k)
                vj = T.axis.spatial(10, i + j)
                B[vj, vk] = A[vj, vk] * T.float32(2)
        for k in range(4):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi, vk] = B[vi, vk] + B[vi + 2, vk]
""")
    with refused(schedule, "dimension 0 of B is not indexed by iterator 0 of block B", at='"B"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_inputs_that_change_from_tile_to_tile() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((10,))
    for i in range(8):
        for j in range(3):
            with T.sblock("B"):
                v = T.axis.spatial(10, i + j)
                B[v] = A[v] * T.float32(2)
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + B[vi + 2]
        for j in range(10):
            with T.sblock("next"):
                v = T.axis.spatial(10, j)
                A[v] = A[v] + T.float32(1)
""")
    with refused(schedule, "block next changes under loop i what block B reads", at='"next"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_refuses_tiles_whose_elements_are_made_in_no_order() -> None:
    schedule = windows(0)
    schedule.parallel(schedule.get_loops("B")[1])
    with refused(schedule, "loop ax0, which runs in no order: it can't follow the ring", at='"B"'):
        schedule.rolling_buffer("B", 0)


def test_rolling_buffer_leaves_blocks_alone_that_run_in_no_order() -> None:
    more = "    for i, j in T.grid(10, 8):\n" + WINDOW.split("    for i, j in T.grid(12, 10):\n")[1]
    more = (
        more.split("    for i, j, r, s")[0].replace('"B"', '"D"').replace("B[vi, vj]", "D[vi, vj]")
    )
    more = more.replace("D[vi, vj] = A[vi, vj]", "D[vi, vj] = C[vi, vj]")
    text = WINDOW.replace("C: T.Buffer", 'D: T.Buffer((10, 8), "float32"), C: T.Buffer') + more
    schedule = scheduled(text)
    schedule.compute_at("B", schedule.get_loops("C")[0])
    schedule.parallel(schedule.get_loops("D")[0])
    schedule.rolling_buffer("B", 0)
    verify(schedule.func)
    computes_the_same(parse(text), schedule.func)
