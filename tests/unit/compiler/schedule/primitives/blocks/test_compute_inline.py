"""The requirements of `compute_inline`: each one refused, with the place marked."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import BlockRealize
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import blocks
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    INPUT_OVERWRITTEN,
    TWO_WRITERS,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)

VIEW = """
@T.prim_func
def main(A: T.Buffer((8,)), C: T.Buffer((8,))):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2.0
    for i in range(2):
        with T.block("C"):
            vi = T.axis.spatial(2, i)
            T.reads(B[vi * 4 : vi * 4 + 4])
            T.writes(C[vi * 4 : vi * 4 + 4])
            view = T.match_buffer(B[vi * 4 : vi * 4 + 4], (4,))
            for j in range(4):
                C[vi * 4 + j] = view[j]
"""


def test_compute_inline_refuses_a_reduction() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, "block Y is a reduction", at='"Y"'):
        sch.compute_inline("Y")


def test_compute_inline_refuses_an_output() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "block C is an output block, as it writes C: it must stay", at='"C"'):
        sch.compute_inline("C")


def test_compute_inline_refuses_a_second_writer() -> None:
    sch = scheduled(TWO_WRITERS)
    with refused(sch, "block B is not a complete block: block B2 writes B, too", at='"B2"'):
        sch.compute_inline("B")


def test_compute_inline_refuses_inputs_that_are_written_in_between() -> None:
    sch = scheduled(INPUT_OVERWRITTEN)
    with refused(sch, "block clear writes A after block B reads it", at='"clear"'):
        sch.compute_inline("B")


def test_compute_inline_refuses_writes_that_do_not_tell_the_iterators() -> None:
    sch = scheduled(INDICES.format(shape="32,", write="vi * 8 + vj * 2", i=4, j=4, read="v * 2"))
    with refused(sch, "block B writes B at indices that do not determine its iterators", at='"B"'):
        sch.compute_inline("B")


@pytest.mark.parametrize(
    ("shape", "write", "read"),
    [
        ("16,", "vi * 4 + vj", "v"),
        ("16,", "15 - (vi * 4 + vj)", "15 - v"),
        ("4, 4", "vj, vi", "v // 4, v % 4"),
        ("1, 16", "0, vi * 4 + vj", "0, v"),
    ],
)
def test_inlining_follows_indices_both_ways(shape: str, write: str, read: str) -> None:
    text = INDICES.format(shape=shape, write=write, i=4, j=4, read=read)
    before = scheduled(text).func
    for name, block in (("compute_inline", "B"), ("reverse_compute_inline", "C")):
        sch = scheduled(text)
        getattr(sch, name)(block)
        assert not sch.func.root.alloc_buffers
        verify(sch.func)
        computes_the_same(before, sch.func)


def test_reverse_compute_inline_of_a_part_adds_a_predicate() -> None:
    text = INDICES.format(shape="20,", write="vi * 4 + vj", i=5, j=4, read="v + 3")
    sch = scheduled(text)
    before = sch.func
    sch.reverse_compute_inline("C")
    assert "T.where(3 <= i * 4 + j and i * 4 + j < 19)" in sch.func.script()
    verify(sch.func)
    computes_the_same(before, sch.func)


INDICES = """
@T.prim_func
def main(A: T.Buffer(({i}, {j}), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer(({shape}))
    for i, j in T.grid({i}, {j}):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi, vj])
            T.writes(B[{write}])
            B[{write}] = A[vi, vj] * T.float32(2)
    for i in range(16):
        with T.sblock("C"):
            v = T.axis.spatial(16, i)
            T.reads(B[{read}])
            T.writes(C[v])
            C[v] = B[{read}] + T.float32(1)
"""


def test_compute_inline_refuses_to_compute_what_was_not_computed() -> None:
    sch = scheduled(HALF.replace("range(16)", "range(4)"))
    with refused(sch, "block B is not proved to compute all that block C reads", at='"C"'):
        sch.compute_inline("B")


def test_compute_inline_refuses_a_block_of_loops() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    with T.sblock("B"):
        T.reads(A[0:16])
        T.writes(B[0:16])
        for i in range(16):
            B[i] = A[i]
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
""")
    with refused(sch, "block B contains loops or blocks: expected a single store", at='"B"'):
        sch.compute_inline("B")


def test_compute_inline_removes_a_block_without_consumers() -> None:
    text = HALF.replace("C[vi] = B[vi]", "C[vi] = A[vi]").replace(
        "T.reads(B[vi])", "T.reads(A[vi])"
    )
    sch = scheduled(text)
    sch.compute_inline("B")
    assert [realize.block.name for realize in blocks(sch.func)] == ["root", "C"]
    assert not sch.func.root.alloc_buffers


def test_compute_inline_refuses_what_the_iterators_of_another_block_need() -> None:
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,), "int32")
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = vi
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            T.where(B[i] < 4)
            C[vi] = A[vi]
""")
    with refused(sch, "the iterators of block C depend on B", at='"C"'):
        sch.compute_inline("B")


def test_compute_inline_refuses_two_stores() -> None:
    text = HALF.replace("            B[vi] = A", "            B[vi] = A[vi]\n            B[vi] = A")
    sch = scheduled(text)
    with refused(sch, "block B stores more than once", at='"B"'):
        sch.compute_inline("B")


# The consumer copies all of B; block B has iterators for half of it, and reads A up to its end.
HALF_WRITTEN = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.sblock_alloc_buffer((16,))
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi + 8])
            T.writes(B[vi])
            B[vi] = A[vi + 8]
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            T.reads(B[vi])
            T.writes(C[vi])
            C[vi] = B[vi]
"""


def test_compute_inline_refuses_to_read_past_the_end() -> None:
    sch = scheduled(HALF_WRITTEN)
    with refused(sch, "block B is not proved to compute all that block C reads", at='"C"'):
        sch.compute_inline("B")


def test_reverse_compute_inline_refuses_a_producer_of_a_part() -> None:
    sch = scheduled(HALF_WRITTEN)
    with refused(sch, "block B is not proved to write all of B", at='"B"'):
        sch.reverse_compute_inline("C")


def test_a_block_around_the_consumer_says_no_more_that_it_reads_what_is_gone() -> None:
    sch = Schedule(elementwise())
    outer = sch.blockize(sch.get_loops("C")[0])
    sch.compute_inline("B")
    for block in (outer, sch.get_block("C")):
        realize = sch.get(block)
        assert isinstance(realize, BlockRealize)
        assert [region.buffer.name for region in realize.block.reads] == ["A"]
    verify(sch.func)


def test_compute_inline_refuses_a_consumer_that_reads_through_a_view() -> None:
    sch = scheduled(VIEW)
    with refused(sch, "block C has views, through which it may read B", at='"C"'):
        sch.compute_inline("B")


def test_a_block_is_inlined_into_loops_inside_its_consumer() -> None:
    sch = Schedule(elementwise())
    before = sch.func
    block = sch.get_block("C")
    _, inner = sch.loop_partition(sch.get_loops(block)[0], [1, None])
    (part,) = list(sch.get_child_blocks(inner))
    sch.write_at(sch.get_loops(part)[-1], part, 0, "shared")
    sch.compute_inline(part)
    verify(sch.func)
    computes_the_same(before, sch.func)
