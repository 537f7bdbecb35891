"""Buffers are named by their blocks, and written before they are read."""

from __future__ import annotations

from dataclasses import replace

from compiler import ops
from compiler.ir.core.nodes import (
    BlockRealize,
    For,
    Load,
    Stmt,
    Store,
    make_buffer,
)
from tests.unit.compiler.ir.verify.small_programs import B, func_of, num, refusal


def test_a_block_must_name_what_it_reads() -> None:
    func = ops.matmul(4, 4, 4)

    def without_reads(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            return replace(stmt, body=without_reads(stmt.body))
        assert isinstance(stmt, BlockRealize)
        return replace(stmt, block=replace(stmt.block, reads=stmt.block.reads[:1]))

    root = replace(func.root, body=without_reads(func.root.body))
    error = refusal(replace(func, body=replace(func.body, block=root)))
    assert error.message == "block C reads B[v_k, v_j], which its T.reads does not name"


def test_a_buffer_that_is_read_must_be_written() -> None:
    c = make_buffer("C", (8,))
    func = func_of(Store(B, (num(0),), Load(c, (num(0),))), c)
    assert "buffer C is read but never written" in refusal(func).message
