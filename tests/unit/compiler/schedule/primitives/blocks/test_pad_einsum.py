"""`pad_einsum`: padded copies around a block, and each requirement refused."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    computes_the_same,
    refused,
    scheduled,
)


def product(n: int = 5, m: int = 6, k: int = 7) -> PrimFunc:
    A, B = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), "k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "C")
    return te.create_prim_func([A, B, C], "main")


SCALE = """
@T.prim_func
def main(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    for i in range(5):
        with T.sblock("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = A[vi] * T.float32(2)
"""


@pytest.mark.parametrize("padding", [[4, 4, 4], [1, 1, 4], [8, 1, 1], [2, 3, 5], [1, 6, 7]])
def test_pad_einsum_of_a_product(padding: list[int]) -> None:
    schedule = Schedule(product())
    schedule.pad_einsum("C", padding)
    verify(schedule.func)
    computes_the_same(product(), schedule.func)


def test_pad_einsum_copies_in_and_out() -> None:
    schedule = scheduled(SCALE)
    schedule.pad_einsum("C", [4])
    becomes(
        schedule,
        """
@T.prim_func
def main(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    A_pad = T.sblock_alloc_buffer((8,))
    C_pad = T.sblock_alloc_buffer((8,))
    for i0 in range(8):
        with T.sblock("A_pad"):
            v0 = T.axis.spatial(8, i0)
            A_pad[v0] = T.if_then_else(v0 < 5, A[v0], T.float32(0))
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            C_pad[vi] = A_pad[vi] * T.float32(2)
    for i0 in range(5):
        with T.sblock("C_pad"):
            v0 = T.axis.spatial(5, i0)
            C[v0] = C_pad[v0]
""",
    )


def convolution(width: int, dtype: str = "int32") -> str:
    """Return a sum over windows of five elements in steps of two, of an image of some width."""
    return f"""
@T.prim_func
def main(A: T.Buffer(({width},), "{dtype}"), W: T.Buffer((5,), "{dtype}"),
         C: T.Buffer((4,), "{dtype}")):
    for i, r in T.grid(4, 5):
        with T.sblock("C"):
            vi, vr = T.axis.remap("SR", [i, r])
            with T.init():
                C[vi] = T.{dtype}(0)
            C[vi] = C[vi] + A[vi * 2 + vr] * W[vr]
"""


def test_pad_einsum_of_a_window_reads_its_image_further() -> None:
    schedule = scheduled(convolution(14))
    schedule.pad_einsum("C", [1, 4])
    verify(schedule.func)
    assert "A_pad" not in str(schedule.func)
    assert "W_pad" in str(schedule.func)
    computes_the_same(parse(convolution(14)), schedule.func)


def test_pad_einsum_of_multiples_changes_nothing() -> None:
    schedule = Schedule(product())
    before = schedule.func
    schedule.pad_einsum("C", [5, 3, 7])
    assert schedule.func is before


# Requirements


@pytest.mark.parametrize("padding", [[4, 4], [4, 4, 4, 4], [4, 0, 4], [4, -1, 4]])
def test_pad_einsum_refuses_other_than_a_positive_number_an_iterator(padding: list[int]) -> None:
    schedule = Schedule(product())
    with refused(schedule, "block C takes 3 positive numbers, one an iterator", at='"C"'):
        schedule.pad_einsum("C", padding)


def test_pad_einsum_refuses_a_block_without_its_init() -> None:
    schedule = Schedule(product())
    schedule.decompose_reduction("C", schedule.get_loops("C")[0])
    with refused(schedule, "reads what it writes without having initialised it", at="C_update"):
        schedule.pad_einsum("C_update", [4, 4, 4])


def test_pad_einsum_refuses_a_block_of_blocks() -> None:
    schedule = scheduled(SCALE)
    schedule.blockize(schedule.get_loops("C")[0])
    with refused(schedule, "contains loops, buffers or views", at='"C_o"'):
        schedule.pad_einsum("C_o", [4])


def test_pad_einsum_refuses_a_buffer_that_is_touched_at_two_places() -> None:
    text = SCALE.replace(
        "            C[vi] =", "            T.reads(A[vi], A[4 - vi])\n            C[vi] ="
    )
    schedule = scheduled(text.replace("* T.float32(2)", "+ A[4 - vi]"))
    with refused(schedule, "block C accesses a buffer at two places", at='"C"'):
        schedule.pad_einsum("C", [4])


def test_pad_einsum_refuses_indices_that_are_more_than_iterators() -> None:
    schedule = scheduled(SCALE.replace("A[vi]", "A[4 - vi]"))
    with refused(schedule, "block C does not index A by iterators alone", at='"C"'):
        schedule.pad_einsum("C", [4])


def test_pad_einsum_refuses_a_window_that_would_read_beyond_its_image() -> None:
    schedule = scheduled(convolution(13))
    with refused(schedule, "block C does not index A by iterators alone", at='"C"'):
        schedule.pad_einsum("C", [1, 4])
    schedule.pad_einsum("C", [1, 1])


def test_pad_einsum_refuses_floats_of_a_window() -> None:
    """The padding of the weights would be multiplied by elements that may be infinite."""
    schedule = scheduled(convolution(14, "float32"))
    with refused(schedule, "padding of vr is not known to add nothing", at='"C"'):
        schedule.pad_einsum("C", [1, 4])


def test_pad_einsum_refuses_a_loop_that_is_split() -> None:
    schedule = Schedule(product())
    schedule.split(schedule.get_loops("C")[0], [None, 2])
    with refused(schedule, "iterator v_i of block C is not just a loop over its", at='"C"'):
        schedule.pad_einsum("C", [4, 1, 1])


@pytest.mark.parametrize("step", ["T.max(C[vi], A[vi, vk])", "C[vi] + T.exp(A[vi, vk])"])
def test_pad_einsum_refuses_padding_that_would_count(step: str) -> None:
    start = 'T.min_value("float32")' if "max" in step else "T.float32(0)"
    text = f"""
@T.prim_func
def main(A: T.Buffer((4, 7), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 7):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = {start}
            C[vi] = {step}
"""
    schedule = scheduled(text)
    with refused(schedule, "padding of vk is not known to add nothing", at='"C"'):
        schedule.pad_einsum("C", [1, 4])
    schedule.pad_einsum("C", [3, 1])
    if "max" in step:
        computes_the_same(parse(text), schedule.func)


def test_pad_einsum_refuses_a_block_that_shares_its_loops() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32"), D: T.Buffer((5,), "float32")):
    for i in range(5):
        with T.sblock("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = A[vi] * T.float32(2)
        with T.sblock("D"):
            vi = T.axis.spatial(5, i)
            D[vi] = A[vi] + T.float32(1)
""")
    with refused(schedule, "block C shares its loops with others: C, D", at="for i in"):
        schedule.pad_einsum("C", [4])


def test_pad_einsum_refuses_a_block_under_a_condition() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    for i in range(5):
        if i < 6:
            with T.sblock("C"):
                vi = T.axis.spatial(5, i)
                C[vi] = A[vi] * T.float32(2)
""")
    with refused(schedule, "something other than loops encloses block C", at="if i < 6"):
        schedule.pad_einsum("C", [4])


def test_pad_einsum_refuses_a_buffer_that_is_larger_than_what_is_padded() -> None:
    for old, name in (("A: T.Buffer((5,)", "A"), ("C: T.Buffer((5,)", "C")):
        schedule = scheduled(SCALE.replace(old, old.replace("5", "6")))
        with refused(schedule, f"block C does not access all of {name}", at='"C"'):
            schedule.pad_einsum("C", [4])


def test_pad_einsum_refuses_an_iterator_that_tells_no_elements_apart() -> None:
    schedule = Schedule(product())
    schedule.transform_block_layout("C", lambda i, j, k: (i, j, k, i % 1))
    with refused(schedule, "repeats stores of block C", at='"C"'):
        schedule.pad_einsum("C", [1, 1, 1, 4])
