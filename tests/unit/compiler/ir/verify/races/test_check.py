"""Programs that race are refused with both accesses; what has an order, or needs none, is not."""

from __future__ import annotations

import pytest

from compiler.ir.core.program import PrimFunc
from compiler.script.error import ScriptError
from compiler.script.parser import parse

VECTORS = (
    'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), N: T.Buffer((64,), "int32")'
)
SHARED = 'S = T.sblock_alloc_buffer((64,), scope="shared")\n'
THREADS = 'for tx in T.thread_binding(64, thread="threadIdx.x"):\n'
BLOCKS = 'for bx in T.thread_binding(8, thread="blockIdx.x"):\n'
SYNC = '    T.tvm_storage_sync("shared")\n'


def program(body: str) -> PrimFunc:
    lines = (f"    {line}" for line in body.strip("\n").splitlines())
    return parse("\n".join(["@T.prim_func(s_tir=True)", f"def main({VECTORS}):", *lines]))


RACES = {
    "a sum": ("for i in T.parallel(64):\n    B[0] += A[i]", "writes B[0]", "reads B[0]"),
    "a value of the iteration before": (
        "for i in T.parallel(63):\n    B[i + 1] = B[i] + A[i]",
        "writes B[i + 1]",
        "reads B[i]",
    ),
    "half the elements, in a vector": (
        "for i in T.vectorized(64):\n    B[i // 2] = A[i]",
        "writes B[i // 2]",
        "writes B[i // 2]",
    ),
    "two statements of a parallel loop": (
        "for i in T.parallel(32):\n    B[i] = A[i]\n    B[63 - 2 * i] = A[i]",
        "writes B[i]",
        "writes B[63 - 2 * i]",
    ),
    "a place out of a buffer": (
        "for i in T.parallel(64):\n    B[N[i]] = A[i]",
        "writes B[N[i]]",
        "writes B[N[i]]",
    ),
    "a far iteration": (
        "for i in T.parallel(64):\n    if i == 3 or i == 61:\n        B[i % 29] = A[i]",
        "writes B[i % 29]",
        "writes B[i % 29]",
    ),
    "an intermediate that only the first iteration writes": (
        "t = T.sblock_alloc_buffer((1,))\n"
        "for i in T.parallel(64):\n    if i == 0:\n        t[0] = A[i]\n    B[i] = t[0]",
        "writes t[0]",
        "reads t[0]",
    ),
    "a scalar that the first iteration does not write": (
        "t = T.sblock_alloc_buffer(())\nfor i in T.parallel(64):\n"
        "    for j in range(3):\n        if j < i:\n            t[()] = A[i]\n    B[i] = t[()]",
        "writes t[()]",
        "writes t[()]",
    ),
    "an intermediate that one iteration does not write": (
        "t = T.sblock_alloc_buffer((1,))\n"
        "for i in T.parallel(64):\n    if i != 5:\n        t[0] = A[i]\n    B[i] = t[0]",
        "writes t[0]",
        "writes t[0]",
    ),
    "a sum of lanes": (
        "for i in T.parallel(2):\n    B[T.Ramp(0, 1, 4)] = A[T.Ramp(i * 4, 1, 4)]",
        "writes B[T.Ramp(0, 1, 4)]",
        "writes B[T.Ramp(0, 1, 4)]",
    ),
    "shared memory without a barrier": (
        SHARED + THREADS + "    S[tx] = A[tx]\n    B[tx] = S[63 - tx]",
        "writes S[tx]",
        "reads S[63 - tx]",
    ),
    "no barrier before the next iteration": (
        SHARED
        + THREADS
        + "    for k in range(3):\n        S[tx] = A[tx]\n    "
        + SYNC
        + "        B[tx] = S[63 - tx]",
        "writes S[tx]",
        "reads S[63 - tx]",
    ),
    "two threads write one element": (
        THREADS + "    B[tx // 2] = A[tx]",
        "writes B[tx // 2]",
        "writes B[tx // 2]",
    ),
    "blocks of threads read of one another": (
        BLOCKS + "    B[bx] = A[bx]\n" + "    B[bx + 32] = B[7 - bx]",
        "writes B[bx]",
        "reads B[7 - bx]",
    ),
    "threads in a condition on their number": (
        SHARED + THREADS + "    if tx < 32:\n        S[tx] = A[tx]\n        B[tx] = S[31 - tx]",
        "writes S[tx]",
        "reads S[31 - tx]",
    ),
}


def reducing(body: str) -> str:
    """Return a block of threads that reduces over them."""
    return (
        SHARED
        + THREADS
        + f"""
    with T.sblock("sum"):
        k = T.axis.reduce(64, tx)
        {body}
"""
    )


RACES |= {
    "a sum of threads": (THREADS + "    B[0] += A[tx]", "writes B[0]", "reads B[0]"),
    "a sum of threads in shared memory": (
        SHARED + THREADS + "    S[0] += A[tx]\n    B[tx] = S[0]",
        "writes S[0]",
        "reads S[0]",
    ),
    "a reduction whose order matters": (
        reducing("B[0] = B[0] * 2.0 + A[k]"),
        "writes B[0]",
        "reads B[0]",
    ),
    "an intermediate at two unknown places": (
        "t = T.sblock_alloc_buffer((8,))\n"
        "for i in T.parallel(64):\n    t[N[i] % 8] = A[i]\n    B[i] = t[N[63 - i] % 8]",
        "writes t[N[i] % 8]",
        "writes t[N[i] % 8]",
    ),
    "an intermediate whose unknown place changes": (
        "t = T.sblock_alloc_buffer((8,))\nfor i in T.parallel(64):\n"
        "    t[N[i] % 8] = A[i]\n    N[i] = N[i] + 1\n    B[i] = t[N[i] % 8]",
        "writes t[N[i] % 8]",
        "writes t[N[i] % 8]",
    ),
    "a reduction that reads no earlier value": (
        reducing("B[0] = A[k]"),
        "writes B[0]",
        "writes B[0]",
    ),
    "a reduction that uses what others have added": (
        reducing("B[0] = B[0] + A[k]\n        S[k] = B[0]"),
        "writes B[0]",
        "reads B[0]",
    ),
    "a reduction into the elements of others": (
        reducing("B[k] = B[63 - k] + A[k]"),
        "writes B[k]",
        "reads B[63 - k]",
    ),
}

ORDERED = {
    "an iteration an element": "for i in T.parallel(64):\n    B[i] = A[i]",
    "digits of one number": "for i in T.parallel(64):\n    B[i // 8 * 8 + i % 8] = A[i]",
    "evens and odds": "for i in T.parallel(32):\n    B[2 * i] = A[i]\n    B[2 * i + 1] = A[i]",
    "an intermediate of each iteration": (
        "t = T.sblock_alloc_buffer((2,))\nfor i in T.parallel(64):\n"
        "    for j in range(2):\n        t[j] = A[i]\n    B[i] = t[0] + t[1]"
    ),
    "a scalar of each iteration, written under a condition": (
        "t = T.sblock_alloc_buffer(())\nfor i in T.parallel(64):\n"
        "    for j in range(3):\n        if j < 2:\n            t[()] = A[i]\n    B[i] = t[()]"
    ),
    "an intermediate at an unknown place of each iteration": (
        "t = T.sblock_alloc_buffer((8, 2))\nfor i in T.parallel(64):\n"
        "    for j in range(2):\n        t[N[i] % 8, j] = A[i]\n"
        "    B[i] = t[N[i] % 8, 0] + t[N[i] % 8, 1]"
    ),
    "a barrier between": (
        SHARED + THREADS + "    S[tx] = A[tx]\n" + SYNC + "    B[tx] = S[63 - tx]"
    ),
    "barriers on both sides of a loop's body": (
        SHARED
        + THREADS
        + "    for k in range(3):\n        S[tx] = A[tx]\n    "
        + SYNC
        + "        B[tx] = S[63 - tx]\n    "
        + SYNC
    ),
    "a tree of sums": (
        SHARED
        + THREADS
        + "    S[tx] = A[tx]\n"
        + SYNC
        + "    if tx < 32:\n        S[tx] = S[tx] + S[tx + 32]\n"
        + SYNC
        + "    if tx < 16:\n        S[tx] = S[tx] + S[tx + 16]\n"
        + SYNC
        + "    if tx == 0:\n        B[0] = S[0]"
    ),
    "one value by all threads": SHARED + THREADS + "    S[0] = A[0]\n" + SYNC + "    B[tx] = S[0]",
    "barriers of the compiler around blocks": (
        SHARED
        + THREADS
        + """
    with T.sblock("a"):
        v = T.axis.spatial(64, tx)
        T.reads(A[v])
        T.writes(S[v])
        S[v] = A[v]
    with T.sblock("b"):
        v = T.axis.spatial(64, tx)
        T.reads(S[63 - v])
        T.writes(B[v])
        B[v] = S[63 - v]
"""
    ),
    "a sum of all threads that a block declares": (
        THREADS
        + """
    with T.sblock("sum"):
        k = T.axis.reduce(64, tx)
        T.reads(A[k])
        T.writes(B[0])
        with T.init():
            B[0] = T.float32(0)
        B[0] = B[0] + A[k]
"""
    ),
    "the greatest value of all threads": reducing("B[0] = T.max(B[0], A[k])"),
    "the position of the greatest value of all threads": (
        SHARED
        + THREADS
        + """
    with T.sblock("argmax"):
        k = T.axis.reduce(64, tx)
        with T.init():
            N[0] = -1
            B[0] = T.min_value("float32")
        x: T.let[T.int32] = T.Select(B[0] >= A[k], N[0], k)
        y: T.let[T.float32] = T.Select(B[0] >= A[k], B[0], A[k])
        N[0] = x
        B[0] = y
"""
    ),
    "shared memory of each block": (SHARED + BLOCKS + "    S[0] = A[bx]\n    B[bx] = S[0]"),
}


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_refused_with_both_accesses(name: str) -> None:
    body, one, other = RACES[name]
    with pytest.raises(ScriptError) as caught:
        program(body)
    message = str(caught.value).splitlines()[0]
    assert caught.value.code == "race"
    assert "race: the one with" in message
    assert one in message
    assert other in message


@pytest.mark.parametrize("name", ORDERED)
def test_what_has_an_order_or_needs_none_is_accepted(name: str) -> None:
    program(ORDERED[name])


def test_iterations_that_race_are_named() -> None:
    with pytest.raises(ScriptError) as caught:
        program("for i in T.parallel(64):\n    B[T.max(i, 40)] = A[i]")
    (line, *_) = str(caught.value).splitlines()
    assert "the one with i = 1 writes B[T.max(i, 40)], and the one with i = 0 writes" in line
    assert line.endswith("is the same element: run the loop serially, or reduce over it in a block")
