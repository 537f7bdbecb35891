"""Each primitive on buffers and layouts, on a small program: what it rewrites, as text."""

from __future__ import annotations

from collections.abc import Callable

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.golden.schedule.test_primitives import change, convolution, elementwise, matmul
from tests.unit.compiler.schedule.schedule_asserts import IN_PLACE, scheduled

Golden = Callable[[str], None]


def odd_product() -> PrimFunc:
    """Return a product whose result does not divide into tiles."""
    A, B = te.placeholder((6, 4), name="A"), te.placeholder((4, 7), name="B")
    r = te.reduce_axis((0, 4), "k")
    C = te.compute((6, 7), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    return te.create_prim_func([A, B, C], "odd_product")


def test_cache_read_of_part_of_a_buffer(golden: Golden) -> None:
    schedule = Schedule(matmul())
    schedule.blockize(schedule.get_loops("C")[2])
    golden(change(schedule, lambda s: s.cache_read("C", 0, "shared")))


def test_cache_write_with_consumers(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    golden(change(schedule, lambda s: s.cache_write("B", 0, "local", consumer_blocks=["C"])))


def test_cache_inplace(golden: Golden) -> None:
    schedule = scheduled(IN_PLACE)
    golden(change(schedule, lambda s: s.cache_inplace("A", 0, "local")))


def test_cache_index(golden: Golden) -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((6, 6), "float32"), B: T.Buffer((12, 12), "float32")):
    for i, j in T.grid(12, 12):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // 4 + vj // 4, vj // 2]
""")
    golden(change(schedule, lambda s: s.cache_index("B", "global")))


RESIZED = """
@T.prim_func
def main(A: T.Buffer((20,), "float32"), C: T.Buffer((10,), "float32")):
    B = T.sblock_alloc_buffer((20,))
    for i in range(20):
        with T.sblock("B"):
            vi = T.axis.spatial(20, i)
            B[vi] = A[vi] + 1.0
    for i in range(10):
        with T.sblock("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[T.Cast("int32", T.floor(T.Cast("float32", vi) * T.float32(2) + 0.5))]
"""


def test_annotate_buffer_access(golden: Golden) -> None:
    schedule = scheduled(RESIZED)
    schedule.split(schedule.get_loops("C")[0], [5, 2])

    def declare_and_move(s: Schedule) -> None:
        s.annotate_buffer_access("C", 0, "read", lambda v: [(v * 2 - 1, v * 2 + 3)])
        s.compute_at("B", s.get_loops("C")[0])

    golden(change(schedule, declare_and_move))


def test_unsafe_set_dtype(golden: Golden) -> None:
    golden(change(scheduled(RESIZED), lambda s: s.unsafe_set_dtype("B", 0, "float16")))


def test_unsafe_hide_buffer_access(golden: Golden) -> None:
    text = RESIZED.replace(
        "            B[vi] = A",
        "            T.reads(A[vi], A[vi])\n            T.writes(B[vi])\n            B[vi] = A",
    )
    golden(change(scheduled(text), lambda s: s.unsafe_hide_buffer_access("B", "read", [1])))


def test_reindex(golden: Golden) -> None:
    schedule = Schedule(convolution())

    def both(s: Schedule) -> None:
        s.reindex("Y", ("read", 0))
        s.reindex("Y", ("write", 0))

    golden(change(schedule, both))


def test_reindex_cache_read(golden: Golden) -> None:
    schedule = Schedule(matmul())
    golden(
        change(
            schedule,
            lambda s: s.reindex_cache_read("C", 0, "shared", lambda i, j, k: (k // 4, i, k % 4)),
        )
    )


def test_reindex_cache_write(golden: Golden) -> None:
    schedule = Schedule(matmul())
    golden(
        change(schedule, lambda s: s.reindex_cache_write("C", 0, "local", lambda i, j, k: (j, i)))
    )


def test_read_at_and_write_at(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, _, _ = schedule.get_loops("C")
    i_0, _ = schedule.split(i, [None, 4])

    def copies(s: Schedule) -> None:
        s.read_at(i_0, "C", 0, "shared")
        s.write_at(i_0, "C", 0, "local")

    golden(change(schedule, copies))


def test_set_scope(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    golden(change(schedule, lambda s: s.set_scope("B", 0, "shared")))


def test_storage_align(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    golden(change(schedule, lambda s: s.storage_align("B", 0, axis=0, factor=32, offset=8)))


def test_transform_layout(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    golden(
        change(
            schedule,
            lambda s: s.transform_layout("B", "B", lambda i, j: (i // 4, j // 4, i % 4, j % 4)),
        )
    )


def test_transform_layout_of_a_padded_result(golden: Golden) -> None:
    schedule = Schedule(odd_product())
    golden(
        change(
            schedule,
            lambda s: s.transform_layout(
                "C", ("write", 0), lambda i, j: (i, j // 4, j % 4), pad_value=0.0
            ),
        )
    )


def test_transform_layout_of_a_padded_input(golden: Golden) -> None:
    schedule = Schedule(odd_product())
    golden(
        change(
            schedule,
            lambda s: s.transform_layout("C", "B", lambda k, j: (j // 4, k, j % 4), pad_value=0.0),
        )
    )


def test_transform_layout_pads_after_writes_in_another_order(golden: Golden) -> None:
    schedule = Schedule(elementwise(6))
    schedule.reorder(*reversed(schedule.get_loops("B")))
    golden(
        change(
            schedule,
            lambda s: s.transform_layout("B", "B", lambda i, j: (i, j // 4, j % 4), pad_value=0.0),
        )
    )


def test_transform_block_layout(golden: Golden) -> None:
    schedule = Schedule(matmul())
    golden(
        change(
            schedule,
            lambda s: s.transform_block_layout("C", lambda i, j, k: (i * 16 + j, k // 4, k % 4)),
        )
    )
