"""Blocks that touch row-major numbers of their iterators, with symbolic extents."""

from __future__ import annotations

import pytest

from compiler.schedule.legality.block_kind import Unclassified, classify_block
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import blocks
from tests.unit.compiler.schedule.schedule_asserts import scheduled

IN_PLACE = """
@T.prim_func
def main(a: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n * m * 4,), "float32")
    for i, j, k in T.grid(4, n, m):
        with T.sblock("A"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            A[WRITTEN] = A[READ] + T.float32(1)
"""
NUMBER = "vi * n * m + vj * m + vk"


def kind(written: str, read: str) -> object:
    sch: Schedule = scheduled(IN_PLACE.replace("WRITTEN", written).replace("READ", read))
    (realize,) = (r for r in blocks(sch.func) if r.block.name == "A")
    return classify_block(realize.block)


def test_a_number_determines_its_digits() -> None:
    assert kind(NUMBER, NUMBER) == "in_place"


@pytest.mark.parametrize("read", ["vi * n * m + vk * n + vj", "vj * 4 * m + vi * m + vk", "vk"])
def test_other_numbers_are_other_elements(read: str) -> None:
    assert isinstance(kind(NUMBER, read), Unclassified)
    assert isinstance(kind(read, NUMBER), Unclassified)
