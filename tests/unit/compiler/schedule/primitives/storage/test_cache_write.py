"""`cache_write`: requirements, and what is copied."""

from __future__ import annotations

from compiler.ir.core.nodes import static_shape
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    IN_PLACE,
    PREFIX_SUM,
    TWO_WRITERS,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)

READ_LATER = """
@T.prim_func
def main(
    A: T.Buffer((16,), "float32"), B: T.Buffer((17,), "float32"), C: T.Buffer((16,), "float32")
):
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi + 1])
            B[vi + 1] = A[vi] * T.float32(2)
"""


NEVER = """
@T.prim_func
def main(A: T.Buffer((4,)), C: T.Buffer((4,))):
    for i in range(4):
        with T.sblock("C"):
            T.where(i + 4 < 4)
            vi = T.axis.spatial(4, i + 4)
            C[vi] = A[vi]
"""


TOGETHER = """
@T.prim_func
def main(A: T.Buffer((24,)), U: T.Buffer((24,))):
    for i in range(2):
        with T.sblock("U"):
            v0 = T.axis.spatial(2, i)
            v1 = T.axis.spatial(2, 1 - i)
            U[v0 + v1] = A[v0]
"""


def test_cache_write_has_room_for_all_values_of_the_iterators_of_a_block() -> None:
    sch = scheduled(TOGETHER)
    sch.cache_write("U", 0, "local")
    verify(sch.func)
    buffers = sch.func.root.alloc_buffers
    assert [static_shape(buffer) for buffer in buffers] == [(24,)]


def test_cache_write_refuses_a_write_that_is_not_there() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block Y has no write 1; it has 0: Y", at='"Y"'):
        sch.cache_write("Y", 1, "local")
    with refused(sch, "block Y does not write A, but Y", at='"Y"'):
        sch.cache_write("Y", "A", "local")


def test_cache_write_refuses_an_update() -> None:
    sch = scheduled(IN_PLACE)
    with refused(sch, "block A adds to what A held before", at='"A"'):
        sch.cache_write("A", 0, "local")


def test_cache_write_refuses_readers_before_it_in_its_loops() -> None:
    sch = scheduled(READ_LATER)
    reason = "block C reads B before it is written, in loops around both"
    with refused(sch, reason, at='"C"'):
        sch.cache_write("B", 0, "local")


def test_cache_write_refuses_a_second_writer() -> None:
    sch = scheduled(TWO_WRITERS)
    with refused(sch, "block B is not the only one that writes B: so does B2", at='"B2"'):
        sch.cache_write("B", 0, "local")


def test_cache_write_refuses_a_block_that_writes_no_box() -> None:
    sch = scheduled(HALF)
    sch.cache_write("C", 0, "local")
    sch = scheduled(
        HALF.replace(
            "T.axis.spatial(16, i)\n            T.reads(B",
            "T.axis.spatial(16, i * 2)\n            T.reads(B",
        )
    )
    with refused(sch, "block C is not proved to write a box of C", at='"C"'):
        sch.cache_write("C", 0, "local")


def test_cache_write_copies_partial_results_as_they_are_read() -> None:
    sch = scheduled(PREFIX_SUM)
    sch.cache_write("S", 0, "local")
    computes_the_same(scheduled(PREFIX_SUM).func, sch.func)


def test_cache_write_of_a_part_copies_that_part() -> None:
    func = elementwise()
    sch = Schedule(func)
    loop = sch.loop_partition(sch.get_loops("C")[0], [3, None])[1]
    sch.split(loop, [None, 2, 10])
    sch.cache_write("C_i1", 0, "local")
    assert "C[3 + v0, v1] = C_local[v0, v1]" in sch.func.script()
    computes_the_same(func, sch.func)


def test_cache_write_refuses_a_block_that_never_runs() -> None:
    sch = scheduled(NEVER)
    with refused(sch, "block C is not proved to write a box of C", at='"C"'):
        sch.cache_write("C", 0, "local")
