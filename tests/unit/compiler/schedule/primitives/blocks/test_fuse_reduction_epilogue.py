"""`fuse_reduction_epilogue`: a sum that starts from its bias, and each requirement refused."""

from __future__ import annotations

import pytest

from compiler.ir.verify.verify import verify
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    computes_the_same,
    refused,
    scheduled,
)

BIASED = """
@T.prim_func
def main(
    A: T.Buffer((4, 8), "float32"), b: T.Buffer((4,), "float32"), D: T.Buffer((4,), "float32")
):
    C = T.sblock_alloc_buffer((4,))
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
    for i in range(4):
        with T.sblock("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = C[vi] + b[vi]
"""


@pytest.mark.parametrize(
    "value", ["C[vi] + b[vi]", "b[vi] + C[vi]", "C[vi]", "C[vi] + T.float32(2)"]
)
def test_an_epilogue_that_adds_is_what_the_sum_starts_from(value: str) -> None:
    text = BIASED.replace("C[vi] + b[vi]", value)
    schedule = scheduled(text)
    schedule.fuse_reduction_epilogue("C", "D")
    verify(schedule.func)
    computes_the_same(parse(text), schedule.func)


def test_the_sum_writes_what_the_epilogue_wrote() -> None:
    schedule = scheduled(BIASED)
    epilogue = schedule.get_block("D")
    schedule.fuse_reduction_epilogue("C", epilogue)
    becomes(
        schedule,
        """
@T.prim_func
def main(
    A: T.Buffer((4, 8), "float32"), b: T.Buffer((4,), "float32"), D: T.Buffer((4,), "float32")
):
    C = T.sblock_alloc_buffer((4,))
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(b[vi], A[vi, vk])
            T.writes(D[vi])
            with T.init():
                D[vi] = b[vi]
            D[vi] = D[vi] + A[vi, vk]
""",
    )
    with refused(schedule, "is dead", at="def main"):
        schedule.get_loops(epilogue)


def test_an_epilogue_may_store_elsewhere() -> None:
    text = BIASED.replace("D[vi] =", "D[3 - vi] =")
    schedule = scheduled(text)
    schedule.fuse_reduction_epilogue("C", "D")
    verify(schedule.func)
    computes_the_same(parse(text), schedule.func)


# Requirements


@pytest.mark.parametrize(
    "value",
    [
        "T.max(C[vi] + b[vi], T.float32(0))",
        "T.max(C[vi], T.float32(0))",
        "T.min(T.max(C[vi], T.float32(0)), T.float32(6))",
        "C[vi] * T.float32(2) + b[vi]",
        "C[vi] - b[vi]",
        "C[vi] + C[vi]",
        "C[3 - vi] + b[vi]",
        "C[vi] + D[vi]",
    ],
)
def test_fuse_reduction_epilogue_refuses_what_is_no_addition(value: str) -> None:
    schedule = scheduled(BIASED.replace("C[vi] + b[vi]", value))
    reason = "block D is not complete" if "D[vi]" in value else "does not only add a term to"
    with refused(schedule, reason, at='"D"'):
        schedule.fuse_reduction_epilogue("C", "D")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("C[vi] = C[vi] + A", "C[vi] = C[vi] * A", "by a known commutative reducer"),
        ("C[vi] = T.float32(0)", "C[vi] = T.float32(1)", "by a known commutative reducer"),
        ("C[vi] = C[vi] + A[vi, vk]", "C[vi] = C[vi] * T.exp(A[vi, vk])", "by a known commutative"),
    ],
)
def test_fuse_reduction_epilogue_refuses_what_is_no_sum(old: str, new: str, reason: str) -> None:
    schedule = scheduled(BIASED.replace(old, new))
    with refused(schedule, reason, at='"C"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_fuse_reduction_epilogue_refuses_another_reducer() -> None:
    text = BIASED.replace("C[vi] = T.float32(0)", 'C[vi] = T.min_value("float32")')
    schedule = scheduled(
        text.replace("C[vi] = C[vi] + A[vi, vk]", "C[vi] = T.max(C[vi], A[vi, vk])")
    )
    with refused(schedule, "block C is not a sum into one buffer", at='"C"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_fuse_reduction_epilogue_refuses_a_block_that_is_no_reduction() -> None:
    schedule = scheduled(BIASED)
    with refused(schedule, "block D is not a reduction with an init", at='"D"'):
        schedule.fuse_reduction_epilogue("D", "C")


def test_fuse_reduction_epilogue_refuses_a_sum_that_starts_again() -> None:
    text = BIASED.replace("for i, k in T.grid(4, 8)", "for again, i, k in T.grid(2, 4, 8)")
    text = text.replace("for again, i, k in T.grid(2, 4, 8)", "for i, k, again in T.grid(4, 8, 2)")
    schedule = scheduled(text)
    with refused(schedule, "is not proved to reduce each element over all points", at='"C"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_fuse_reduction_epilogue_refuses_blocks_of_different_scopes() -> None:
    schedule = scheduled(BIASED)
    schedule.blockize(schedule.get_loops("D")[0])
    with refused(schedule, "block D is not in the scope of block C", at='"D"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_fuse_reduction_epilogue_refuses_an_output() -> None:
    schedule = scheduled(
        BIASED.replace("    C = T.sblock_alloc_buffer((4,))\n", "").replace(
            'b: T.Buffer((4,), "float32")',
            'b: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")',
        )
    )
    with refused(schedule, "block C is an output block, as it writes C: it must stay", at='"C"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_fuse_reduction_epilogue_refuses_an_epilogue_of_a_part() -> None:
    schedule = scheduled(BIASED.replace("for i in range(4)", "for i in range(3)"))
    with refused(schedule, "is not complete, or does not run for all its points", at='"D"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_fuse_reduction_epilogue_refuses_other_iterators() -> None:
    text = BIASED.replace(
        """            vi = T.axis.spatial(4, i)
            D[vi] = C[vi] + b[vi]""",
        """            vi = T.axis.spatial(4, i)
            vu = T.axis.spatial(1, 0)
            D[vi + vu] = C[vi] + b[vi]""",
    )
    schedule = scheduled(text)
    with refused(schedule, "has other iterators than the spatial ones of block C", at='"D"'):
        schedule.fuse_reduction_epilogue("C", "D")


def more(block: str, where: str = "end") -> str:
    """Return the program with another block over four points, at its end or in between."""
    nest = f"""    for i in range(4):
        with T.sblock("E"):
            vi = T.axis.spatial(4, i)
            {block}
"""
    text = BIASED.replace(
        'D: T.Buffer((4,), "float32")', 'D: T.Buffer((4,), "float32"), E: T.Buffer((4,), "float32")'
    )
    if where == "end":
        return text + nest
    place = text.index("    for i in range(4)" if where == "middle" else "    for i, k in")
    return text[:place] + nest + text[place:]


@pytest.mark.parametrize(
    ("block", "where", "reason"),
    [
        ("E[vi] = C[vi]", "end", "block E reads what block C sums up"),
        ("b[vi] = E[vi]", "middle", "block E writes what block D adds, not before block C"),
        ("D[vi] = E[vi]", "middle", "block E writes what block D writes"),
        ("E[vi] = D[vi]", "middle", "block E may read what block D has not written yet"),
        ("E[vi] = D[vi]", "start", "block E may read what block D has not written yet"),
    ],
)
def test_fuse_reduction_epilogue_refuses_what_others_could_see(
    block: str, where: str, reason: str
) -> None:
    schedule = scheduled(more(block, where))
    with refused(schedule, reason, at='"E"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_a_later_reader_of_the_epilogue_does_not_count() -> None:
    text = more("E[vi] = D[vi]")
    schedule = scheduled(text)
    schedule.fuse_reduction_epilogue("C", "D")
    computes_the_same(parse(text), schedule.func)


def test_fuse_reduction_epilogue_refuses_a_sum_that_is_read_before_it_is_done() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), D: T.Buffer((4,), "float32")):
    C = T.sblock_alloc_buffer((4,))
    for i in range(4):
        for k in range(8):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        with T.sblock("D"):
            vi = T.axis.spatial(4, 3 - i)
            D[vi] = C[vi] + T.float32(1)
""")
    with refused(schedule, "block D may read a sum that is not finished", at='"D"'):
        schedule.fuse_reduction_epilogue("C", "D")


def test_fuse_reduction_epilogue_refuses_a_sum_over_what_the_epilogue_writes() -> None:
    text = BIASED.replace("C[vi] + A[vi, vk]", "C[vi] + A[vi, vk] * D[vi]")
    schedule = scheduled(text)
    with refused(schedule, "block C reads what block D writes", at='"C"'):
        schedule.fuse_reduction_epilogue("C", "D")
