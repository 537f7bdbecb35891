from __future__ import annotations

import pytest

from compiler.ir.interpret.coverage import written_whole
from compiler.script import parse

PROGRAM = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        if {condition}:
            B[i] = A[i]
"""


@pytest.mark.parametrize(
    ("condition", "is_whole"),
    [
        ("i < 8", True),
        ("i < 7", False),
        ("A[i] < 7", False),
        ('i < T.tvm_storage_sync("shared")', False),
        ('i < 7 or i < T.tvm_storage_sync("shared")', False),
    ],
)
def test_what_is_stored_under_a_condition(condition: str, is_whole: bool) -> None:
    func = parse(PROGRAM.format(condition=condition))
    assert [b.name for b in written_whole(func)] == (["B"] if is_whole else [])
