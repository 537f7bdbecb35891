"""`get_output_blocks`: what a scope computes for others."""

from __future__ import annotations

import pytest

from tests.unit.compiler.schedule.schedule_asserts import (
    refused,
    scheduled,
)

NESTED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for io in range(2):
        with T.sblock("outer"):
            vo = T.axis.spatial(2, io)
            T.reads(A[vo * 4:vo * 4 + 4])
            T.writes(C[vo * 4:vo * 4 + 4])
            B = T.sblock_alloc_buffer((8,))
            for i in range(4):
                with T.sblock("B"):
                    vi = T.axis.spatial(8, vo * 4 + i)
                    T.reads(A[vi])
                    T.writes(B[vi])
                    B[vi] = A[vi] + T.float32(1)
            for i in range(4):
                with T.sblock("C"):
                    vi = T.axis.spatial(8, vo * 4 + i)
                    T.reads(B[vi])
                    T.writes(C[vi])
                    C[vi] = B[vi] * T.float32(2)
"""


@pytest.mark.parametrize(
    ("scope", "outputs"), [("root", ["outer", "C"]), ("outer", ["C"]), ("B", []), ("C", [])]
)
def test_output_blocks_write_what_their_scope_does_not_allocate(
    scope: str, outputs: list[str]
) -> None:
    sch = scheduled(NESTED)
    found = sch.get_output_blocks(scope)
    assert [sch.get(b).block.name for b in found] == outputs  # type: ignore[union-attr]


def test_get_output_blocks_refuses_an_unknown_block() -> None:
    sch = scheduled(NESTED)
    with refused(sch, 'there is no block "X"', at="def main"):
        sch.get_output_blocks("X")
