"""Which blocks are complete, reductions, updates; and why some are nothing of the kind."""

from __future__ import annotations

import pytest

from compiler.schedule.kind import Unknown, is_commutative, kind_of
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree import find_block, realize_at
from tests.unit.compiler.schedule.refusals import matmul_relu, refused, scheduled

BLOCK = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    for i, k in T.grid(4, 4):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.{kind}(4, k)
            T.reads(A[0:4, 0:4], C[0:4, 0:4])
            T.writes(C[0:4, 0:4])
            {body}
"""


def block(kind: str, body: str) -> Schedule:
    return scheduled(BLOCK.format(kind=kind, body=body))


def test_kinds() -> None:
    sch = Schedule(matmul_relu())
    sch.decompose_reduction("Y", sch.get_loops("Y")[2])
    kinds = {"Y_init": "complete", "Y_update": "update", "C": "complete"}
    for name, kind in kinds.items():
        path = find_block(sch.func, name)
        assert path is not None
        assert kind_of(realize_at(path).block) == kind
    path = find_block(matmul_relu(), "Y")
    assert path is not None
    assert kind_of(realize_at(path).block) == "reduction"
    assert is_commutative(realize_at(path).block)


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("spatial", "C[vi, 0] = A[vi, vk]", "does not write a different element for each vk"),
        ("spatial", "C[vi, vk] = C[vk, vi]", "touches C at more than one element in a run"),
        ("spatial", "C[i, vk] = A[vi, vk]", "names loops from outside: i"),
        ("opaque", "C[vi, vk] = A[vi, vk]", "has the opaque iterator vk"),
        ("reduce", "C[vi, vk] = A[vi, vk]", "for each vk, a reduction iterator"),
        ("reduce", "C[vi, 0] = A[vi, vk]", "but does not read what it writes"),
    ],
)
def test_blocks_of_no_kind(kind: str, body: str, reason: str) -> None:
    sch = block(kind, body)
    found = kind_of(realize_at(find_block(sch.func, "C") or ()).block)
    assert isinstance(found, Unknown)
    assert reason in found.reason


def test_a_block_in_place_is_neither_moved_nor_cached() -> None:
    sch = block("spatial", "C[vi, vk] = C[vi, vk] + A[vi, vk]")
    assert kind_of(realize_at(find_block(sch.func, "C") or ()).block) == "in_place"
    with refused(sch, "block C adds to what C held before", at='"C"'):
        sch.cache_write("C", 0, "local")
    i, k = sch.get_loops("C")
    sch.reorder(k, i)
    sch.parallel(k)


@pytest.mark.parametrize(
    "primitive",
    [
        lambda s, loop: s.compute_at("C", loop),
        lambda s, loop: s.reverse_compute_at("C", loop),
        lambda s, _: s.compute_inline("C"),
        lambda s, _: s.cache_write("C", 0, "local"),
        lambda s, loop: s.decompose_reduction("C", loop),
    ],
)
def test_primitives_refuse_blocks_of_no_kind(primitive: object) -> None:
    text = BLOCK.format(kind="spatial", body="C[vi, 0] = A[vi, vk]") + (
        "    for j in range(4):\n"
        '        with T.sblock("other"):\n'
        "            vj = T.axis.spatial(4, j)\n"
        "            T.reads(A[vj, 0])\n"
        "            T.writes(C[vj, 1])\n"
        "            C[vj, 1] = A[vj, 0]\n"
    )
    sch = scheduled(text)
    (j,) = sch.get_loops("other")
    with refused(sch, "does not write a different element for each vk", at='"C"'):
        primitive(sch, j)  # type: ignore[operator]


def test_the_init_of_a_reduction_may_not_read_what_it_writes() -> None:
    sch = block(
        "reduce",
        "with T.init():\n                C[vi, 0] = C[vi, 0]\n"
        "            C[vi, 0] = C[vi, 0] + A[vi, vk]",
    )
    found = kind_of(realize_at(find_block(sch.func, "C") or ()).block)
    assert isinstance(found, Unknown)
    assert "reads in its init what it initialises" in found.reason
