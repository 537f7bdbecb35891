"""Which blocks are complete, reductions, updates; and why some are nothing of the kind."""

from __future__ import annotations

import pytest

from compiler.ir.verify.verify import verify
from compiler.schedule.legality.block_kind import Unclassified, classify_block, is_commutative
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import find_block, realize_at
from tests.unit.compiler.schedule.schedule_asserts import matmul_relu, refused, scheduled

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
        assert classify_block(realize_at(path).block) == kind
    path = find_block(matmul_relu(), "Y")
    assert path is not None
    assert classify_block(realize_at(path).block) == "reduction"
    assert is_commutative(realize_at(path).block)


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("spatial", "C[vi, 0] = A[vi, vk]", "does not write a different element for each vk"),
        ("spatial", "C[vi, vk] = C[vk, vi]", "touches C at more than one element in a run"),
        ("opaque", "C[vi, vk] = A[vi, vk]", "has the opaque iterator vk"),
        ("reduce", "C[vi, vk] = A[vi, vk]", "for each vk, a reduction iterator"),
        ("reduce", "C[vi, 0] = A[vi, vk]", "but does not read what it writes"),
    ],
)
def test_blocks_of_no_kind(kind: str, body: str, reason: str) -> None:
    sch = block(kind, body)
    found = classify_block(realize_at(find_block(sch.func, "C") or ()).block)
    assert isinstance(found, Unclassified)
    assert reason in found.reason


def test_a_block_that_names_a_loop_around_it_is_not_moved() -> None:
    sch = block("spatial", "C[i, vk] = A[vi, vk]")
    with refused(sch, "block C uses loop variables from outside: i", at='"C"'):
        sch.compute_inline("C")


def test_a_block_in_place_is_neither_moved_nor_cached() -> None:
    sch = block("spatial", "C[vi, vk] = C[vi, vk] + A[vi, vk]")
    assert classify_block(realize_at(find_block(sch.func, "C") or ()).block) == "in_place"
    with refused(sch, "block C adds to what C held before", at='"C"'):
        sch.cache_write("C", 0, "local")


def test_iterations_of_a_block_in_place_run_at_once_if_they_are_apart() -> None:
    sch = block("spatial", "C[vi, vk] = C[vi, vk] + A[vi, vk]")
    i, k = sch.get_loops("C")
    sch.reorder(k, i)
    sch.parallel(k)
    verify(sch.func)
    sch = block("spatial", "C[vi, 0] = C[vi, 0] + A[vi, vk]")
    with refused(sch, "touch different elements of C", at='"C"'):
        sch.parallel(sch.get_loops("C")[1])


@pytest.mark.parametrize(
    "primitive",
    [
        lambda s, loop: s.compute_at("C", loop),
        lambda s, loop: s.reverse_compute_at("C", loop),
        lambda s, _: s.compute_inline("C"),
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
    found = classify_block(realize_at(find_block(sch.func, "C") or ()).block)
    assert isinstance(found, Unclassified)
    assert "reads in its init what it initialises" in found.reason


def kind_of_block(text: str, name: str) -> object:
    path = find_block(scheduled(text).func, name)
    assert path is not None
    return classify_block(realize_at(path).block)


NESTED = """
@T.prim_func
def main(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16,), "float32")):
    for io in range(4):
        with T.sblock("outer"):
            vio = T.axis.spatial(4, io)
            T.reads(A[vio * 4:vio * 4 + 4, 0:8])
            T.writes(C[vio * 4:vio * 4 + 4])
            {body}
"""


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (
            # The sums start in the block, so that what it reads of C is its own.
            """
            for ii, k in T.grid(4, 8):
                with T.sblock("inner"):
                    vi = T.axis.spatial(16, vio * 4 + ii)
                    vk = T.axis.reduce(8, k)
                    T.reads(A[vi, vk])
                    T.writes(C[vi])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
""",
            "complete",
        ),
        (
            """
            for ii in range(4):
                C[vio * 4 + ii] = T.float32(0)
            for ii, k in T.grid(4, 8):
                C[vio * 4 + ii] = C[vio * 4 + ii] + A[vio * 4 + ii, k]
""",
            "complete",
        ),
        (
            """
            for ii in range(3):
                C[vio * 4 + ii] = T.float32(0)
            for ii, k in T.grid(4, 8):
                C[vio * 4 + ii] = C[vio * 4 + ii] + A[vio * 4 + ii, k]
""",
            "in_place",
        ),
        (
            """
            for ii in range(4):
                if A[vio * 4, 0] > T.float32(0):
                    C[vio * 4 + ii] = T.float32(0)
                C[vio * 4 + ii] = C[vio * 4 + ii] + A[vio * 4 + ii, 0]
""",
            "in_place",
        ),
    ],
)
def test_a_block_of_blocks_or_loops_is_what_it_is_from_outside(body: str, kind: str) -> None:
    text = NESTED.format(body=body.strip()).replace("T.reads(A[vio", "T.reads(C[0:16], A[vio")
    assert kind_of_block(text, "outer") == kind


def test_a_block_whose_runs_overlap_is_of_no_kind() -> None:
    body = "for ii in range(5):\n                C[T.min(vio * 4 + ii, 15)] = A[vio * 4, 0]"
    found = kind_of_block(
        NESTED.format(body=body).replace("writes(C[vio * 4:vio * 4 + 4]", "writes(C[0:16]"), "outer"
    )
    assert isinstance(found, Unclassified)


def test_a_reduction_of_two_values_is_a_reduction() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), V: T.Buffer((4,), "float32"), I: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 8):
        with T.sblock("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(V[vi], I[vi])
            with T.init():
                V[vi] = T.float32(-1e30)
                I[vi] = -1
            v: T.let[T.float32] = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            n: T.let[T.int32] = T.Select(V[vi] >= A[vi, vk], I[vi], vk)
            V[vi] = v
            I[vi] = n
"""
    assert kind_of_block(text, "argmax") == "reduction"
