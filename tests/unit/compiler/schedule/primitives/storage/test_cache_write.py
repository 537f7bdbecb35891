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
    with refused(sch, "block B is not a complete block: block B2 writes B, too", at='"B2"'):
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


def test_a_copy_in_a_symbolic_scope_needs_no_guard() -> None:
    sch = scheduled("""
@T.prim_func
def main(a: T.handle, c: T.handle, n: T.int32):
    A = T.match_buffer(a, ((n + 7) // 8 * 8,), "float32")
    C = T.match_buffer(c, ((n + 7) // 8 * 8,), "float32")
    for i_0 in range((n + 7) // 8):
        with T.sblock("outer"):
            vo = T.axis.spatial((n + 7) // 8, i_0)
            T.reads(A[vo * 8:vo * 8 + 8])
            T.writes(C[vo * 8:vo * 8 + 8])
            for i_1 in range(8):
                with T.sblock("C"):
                    vi = T.axis.spatial(8, i_1)
                    C[vo * 8 + vi] = A[vo * 8 + vi] * 2.0
""")
    sch.cache_read("C", 0, "local")
    sch.cache_write("C", 0, "local")
    assert "T.where" not in sch.func.script()
    verify(sch.func.specialize({"n": 13}))


def test_a_split_by_a_divisor_of_a_symbolic_extent_needs_no_guard() -> None:
    sch = scheduled("""
@T.prim_func
def main(a: T.handle, c: T.handle, n: T.int32):
    A = T.match_buffer(a, (n * 32,), "float32")
    C = T.match_buffer(c, (n * 32,), "float32")
    for i in range(n * 32):
        with T.sblock("C"):
            vi = T.axis.spatial(n * 32, i)
            C[vi] = A[vi]
""")
    sch.split(sch.get_loops("C")[0], [None, 32])
    assert "T.where" not in sch.func.script()
    sch.split(sch.get_loops("C")[1], [None, 5])
    assert "T.where" in sch.func.script()
